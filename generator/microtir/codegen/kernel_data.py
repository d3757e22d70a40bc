"""Lists which layers call a micro-kernel, so that a line of its C leads back to the model."""

from __future__ import annotations

from microtir.codegen.metadata import KernelData
from microtir.codegen.program import CProgram
from microtir.measure.functions import kernels_of


def kernel_data(program: CProgram) -> tuple[KernelData, ...]:
    """Return the micro-kernels of a model in printing order, but for their lines."""
    users: dict[str, list[str]] = {}
    for layer in program.layers:
        for kernel in dict.fromkeys(kernels_of(layer)):
            users.setdefault(program.names[kernel], []).append(program.names[layer])
    printed = [program.names[function] for function in program.functions]
    return tuple(
        KernelData(name, lines=(), layers=tuple(users[name])) for name in printed if name in users
    )
