"""Prints how a program activates its accelerators around a run, and hands on their states.

As in microTVM's device API a run activates every device, opens and closes it around each call on
it, and deactivates it, whatever happens in between; the first error reaches the application.
"""

from __future__ import annotations

from collections.abc import Sequence

from microtir.codegen.printer.layout import indent, struct_text
from microtir.codegen.program import CProgram
from microtir.tir.ir import Device


def devices_parameter(program: CProgram) -> str:
    """Return the last parameter in C of a function that uses a device."""
    return f"const {struct_name(program)} *devices"


def struct_name(program: CProgram) -> str:
    """Return the struct of the application's states."""
    return f"struct {program.name}_devices"


def devices_struct(program: CProgram) -> str:
    """Return the type of what a run is given."""
    return struct_text(struct_name(program), device_members(program))


def device_members(program: CProgram) -> list[tuple[str, str]]:
    """Return the states of all devices as members of a struct, each with a comment."""
    return [
        (f"void *{device.name};", f"/* passed to {device.activate}() and the others */")
        for device in program.devices
    ]


def driver_prototypes(program: CProgram) -> list[str]:
    """Return the functions of each device's driver that entries call, without semicolons."""
    return [
        f"int32_t {function}(void *context)"
        for device in program.devices
        for function in (device.activate, device.deactivate)
    ]


def activated_name(name: str) -> str:
    """Return the name of the function that runs while devices are active."""
    return f"{name}_activated"


def activation(program: CProgram, name: str, arguments: Sequence[str]) -> list[str]:
    """Return statements of the entry function `name`: a run between activation and deactivation."""
    call = f"{activated_name(name)}({', '.join(arguments)})"
    first, *rest = _around(program.devices, call)
    return [f"int32_t {first}", *rest, "return status;"]


def _around(devices: tuple[Device, ...], call: str) -> list[str]:
    if not devices:
        return [f"status = {call};"]
    device, rest = devices[0], devices[1:]
    ended = f"{device.name}_ended"
    return [
        f"status = {device.activate}(devices->{device.name});",
        "if (status == 0) {",
        *indent([
            *_around(rest, call),
            f"const int32_t {ended} = {device.deactivate}(devices->{device.name});",
            f"status = status != 0 ? status : {ended};",
        ]),
        "}",
    ]  # fmt: skip
