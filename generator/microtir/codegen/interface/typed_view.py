"""Prints what a compiler checks of a header: sizes of types, and arrays of tensors in C++."""

from __future__ import annotations

from collections.abc import Iterator

from microtir.codegen.interface import header
from microtir.codegen.interface.parts import Draft, Part, Place, rendered
from microtir.codegen.interface.pools import passed_pools
from microtir.codegen.printer.c_types import C_TYPES
from microtir.codegen.printer.layout import INDENT, wrap
from microtir.codegen.program import CProgram
from microtir.module.ir_module import ModelInfo, Port, PortKind


def parts(draft: Draft) -> Iterator[Part]:
    """Yield what can be checked of a model's interface."""
    program, model = draft.program, draft.model
    stems = dict(zip(model.ports, header.port_stems(program, model), strict=True))
    if checks := list(_checks(program, model, stems)):
        yield rendered(
            Place.CHECKS,
            "checks.h.j2",
            checks=_asserts("static_assert", checks),
            c_checks=_asserts("_Static_assert", checks),
        )
    functions = [f for kind in PortKind for f in _function(program, model, kind, stems)]
    if functions:
        name = program.name
        yield rendered(Place.CPLUSPLUS, "view.h.j2", name=name, functions=functions)


def _asserts(keyword: str, checks: list[str]) -> list[str]:
    text = "this compiler has other types"
    return [line for check in checks for line in wrap(f'{keyword}({check}, "{text}");')]


def _checks(program: CProgram, model: ModelInfo, stems: dict[Port, str]) -> Iterator[str]:
    for port in model.ports:
        if port.type.elements:
            macro = f"{program.macro}_{stems[port].upper()}"
            size = f"sizeof({C_TYPES[port.type.dtype]})"
            yield f"{macro}_SIZE / {macro}_ELEMENTS == {size}"
    for pool in passed_pools(program):
        if pool.size:
            tag = f"{program.name}{pool.macro.removeprefix(program.macro).lower()}"
            yield f"sizeof(struct {tag}) % {pool.macro}_ALIGNMENT == 0"


def _function(
    program: CProgram, model: ModelInfo, kind: PortKind, stems: dict[Port, str]
) -> list[str]:
    """Return the lines of the function that makes the struct of all inputs, or of all outputs.

    There is none where members are no pointers to whole tensors of the caller.
    """
    ports = [port for port in model.ports if port.kind is kind]
    if not ports or any(p.row_bytes is not None or p.offset is not None for p in ports):
        return []
    members = header.members(program, model, kind)
    struct = f"{program.name}_{kind.value}s"
    result = "made"
    while result in {port.c_name for port in ports}:
        result += "_"
    arrays = [
        member.replace(f"*{port.c_name}", f"(&{port.c_name})")
        + f"[{program.macro}_{stems[port].upper()}_ELEMENTS]"
        for port, member in zip(ports, members, strict=True)
    ]
    return [
        *wrap(f"inline struct {struct} {kind.value}s({', '.join(arrays)})"),
        "{",
        f"{INDENT}struct {struct} {result};",
        *(f"{INDENT}{result}.{port.c_name} = {port.c_name};" for port in ports),
        f"{INDENT}return {result};",
        "}",
        "",
    ]
