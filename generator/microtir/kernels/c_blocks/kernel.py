"""Descriptions of the micro-kernels of this folder, and copies, the simplest of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from microtir import te
from microtir.dtype import DType
from microtir.kernels.common import micro_kernel, unrolling
from microtir.kernels.common.made_once import made_once
from microtir.schedule import KernelDescription, Schedule
from microtir.tir import function, ir

_WIDEST = 1 << 16  # a window is no wider than its image


def portable(
    name: str, about: str, steps: Schedule, args: Sequence[te.Tensor], *, noinline: bool = True
) -> KernelDescription:
    """Describe a micro-kernel that is printed as C for every CPU.

    Args:
        name: says what it is specialised for; equal kernels have equal names.
        about: its comment.
        steps: the scheduled computation.
        args: inputs, each spanning what the kernel reaches from it, and the output, written whole.
        noinline: it stays a function of its own in C: variables of the layers that call it would
            compete for registers.
    """
    kernel = function.MicroKernel((about,), noinline=noinline)
    meaning = replace(steps.micro_kernel(args, name), kernel=kernel)
    *reads, written = (micro_kernel.all_of(tensor.buffer) for tensor in args)
    return KernelDescription(meaning, ir.KernelContract(tuple(reads), (written,)))


def unroll_all(steps: Schedule, tensor: te.Tensor, axis: str) -> None:
    """Unroll the loops over an axis of a tensor, those that cache_write has made included."""
    for loop in steps.loops(tensor):
        if loop.name in (axis, f"{axis}_init", f"{axis}_write"):
            steps.unroll(loop, limit=_WIDEST)


@made_once
def copy(size: int, dtype: DType, turn: int = 1) -> KernelDescription:
    """Move `size` elements, `turn` of them at a time; parameters: from, to."""
    source = te.placeholder((size,), dtype, "source")
    target = te.compute((size,), lambda i: source[i], "target")
    steps = te.create_schedule(target)
    unrolling.unroll_by(steps, steps.loop(target, "i"), size, turn)
    name = f"copy_{dtype.value}_{size}" + f"_by{turn}" * (turn > 1)
    about = f"Copies {size} elements"
    return portable(name, about, steps, (source, target), noinline=False)
