"""The passes that `lower` runs over every function, in order."""

from __future__ import annotations

from typing import ClassVar, Protocol

from microtir.tir.ir import PrimFunc
from microtir.tir.passes.merging import merge_functions
from microtir.tir.passes.partition import PartitionLoops
from microtir.tir.passes.scalars import ScalarArrays
from microtir.tir.passes.simplify import Simplify
from microtir.tir.passes.unroll import UnrollLoops
from microtir.tir.passes.vectorize import LowerVectorized

__all__ = [
    "LowerVectorized",
    "PartitionLoops",
    "Pass",
    "ScalarArrays",
    "Simplify",
    "UnrollLoops",
    "merge_functions",
    "micro_kernel",
    "pipeline",
]


class Pass(Protocol):
    """A rewrite of one function that keeps its meaning; options are fields of the pass."""

    name: ClassVar[str]

    def __call__(self, func: PrimFunc) -> PrimFunc: ...


def pipeline(
    unroll_max_extent: int = 0, simple_mode: bool = False, disable_unroll: bool = False
) -> tuple[Pass, ...]:
    """Return the passes in order.

    Args:
        unroll_max_extent: as the field of UnrollLoops.
        simple_mode: leave out loop partition and unrolling.
        disable_unroll: leave out unrolling, also of marked loops.
    """
    if simple_mode:
        return (Simplify(), LowerVectorized())
    return (
        Simplify(),
        PartitionLoops(),
        Simplify(),  # trips and bounds of the parts become literals
        *(() if disable_unroll else (UnrollLoops(unroll_max_extent),)),
        LowerVectorized(),
        Simplify(),  # the copies know the value of the loop variable
        ScalarArrays(),
    )


def micro_kernel(func: PrimFunc) -> PrimFunc:
    """Return a scheduled micro-kernel, finished.

    Layers call it as it is, and no pass reaches it later.
    """
    for each in (UnrollLoops(), LowerVectorized(), ScalarArrays()):
        func = each(func)
    return func
