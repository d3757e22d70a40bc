"""Finds the functions and layers in which a program of a project faulted."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence

from microtir.boards.toolchain import Symbol, symbols
from microtir.projects.project import Project

# What templates/projects/baremetal/debug_checks/board/fault.c prints.
_FAULT = re.compile(r"^fault: .*, PC 0x(?P<pc>[0-9a-f]{8}), LR 0x(?P<lr>[0-9a-f]{8})", re.MULTILINE)
_MEANINGS = (("pc", "PC"), ("lr", "LR"))


def fault_places(project: Project, output: str) -> list[str]:
    """Return a line for each address that the description of a fault names.

    Args:
        project: which was built with debug checks.
        output: of its program.

    Raises:
        ProjectError: it was not built, or its files are damaged.
        MissingToolError: the board's compiler is not on this machine.
    """
    faults = list(_FAULT.finditer(output))
    if not faults:
        return []
    code = [
        symbol
        for symbol in symbols(project.board.toolchain, project.built_program())
        if symbol.kind in "tTwW" and symbol.size
    ]
    layers = dict(_layers(project))
    return [
        f"{label} 0x{fault[group]}: {_place(int(fault[group], 16), code, layers)}"
        for fault in faults
        for group, label in _MEANINGS
    ]


def _layers(project: Project) -> Iterator[tuple[str, str]]:
    """Yield each C function of a layer or a micro-kernel, and what it computes."""
    for model, facts in zip(project.models, project.metadata(), strict=True):
        names = {layer.function: layer for layer in facts.layers}
        for layer in facts.layers:
            text = f"operator {layer.index} {layer.operator} '{layer.name}' of {model.name}"
            yield layer.function, text
        for kernel in facts.kernels:
            users = [names[name].index for name in kernel.layers if name in names]
            listed = ", ".join(map(str, sorted(set(users))))
            yield kernel.function, f"a micro-kernel of operators {listed} of {model.name}"
        yield model.run, f"the run function of {model.name}, between two layers"


def _place(address: int, code: Sequence[Symbol], layers: dict[str, str]) -> str:
    at = address & ~1  # the lowest bit says that code is Thumb
    number = bisect.bisect_right([symbol.address & ~1 for symbol in code], at) - 1
    if number < 0 or at >= (code[number].address & ~1) + code[number].size:
        return "no function of the program"
    symbol = code[number]
    name = symbol.name.split(".")[0]  # gcc's copies are called NAME.constprop.0
    layer = f", {layers[name]}" if name in layers else ""
    return f"{name}+{at - (symbol.address & ~1):#x}{layer}"
