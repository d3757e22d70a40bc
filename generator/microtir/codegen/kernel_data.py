"""Which layers call a micro-kernel: with its lines, the way from a line of C to the model."""

from __future__ import annotations

from typing import TypedDict

from microtir.codegen.program import Program, kernels_of
from microtir.codegen.typed import Identifier, Natural


class KernelData(TypedDict):
    """A micro-kernel, and the functions of the layers that call it, themselves or through others.

    `lines` are the first and the last of its definition in the C file that is named after the
    module; several definitions, for compilers or CPUs, follow each other.
    """

    function: Identifier
    lines: list[Natural]
    layers: list[Identifier]


def kernel_data(program: Program) -> list[KernelData]:
    """The micro-kernels of a model in printing order, but for their lines."""
    users: dict[str, list[str]] = {}
    for layer in program.layers:
        for kernel in dict.fromkeys(kernels_of(layer)):
            users.setdefault(program.names[kernel], []).append(program.names[layer])
    printed = [program.names[function] for function in program.functions]
    return [
        {"function": name, "lines": [], "layers": users[name]} for name in printed if name in users
    ]
