"""Elements that the regions of a micro-kernel span, from the pointer that it is given."""

from __future__ import annotations

import math
from collections.abc import Mapping

from microtir.tir.analysis.bounds import Bounds
from microtir.tir.ir import Buffer, BufferArgument, Expr, IntImm, Param, Region, Var
from microtir.tir.visitor import walk


def reach(region: Region, given: Mapping[Param, BufferArgument | Expr]) -> tuple[int, int]:
    """Return elements [first, stop) of a kernel's parameter that a region lies in.

    Args:
        region: of the parameter.
        given: arguments of the call; extents that are parameters are numbers there.
    """
    first = last = 0
    for start, extent, dim in zip(region.start, region.extent, region.buffer.shape, strict=True):
        size = IntImm(dim) if isinstance(dim, int) else given[dim]
        assert isinstance(size, IntImm), "kernels of layers are given constant shapes"
        low, high = 0, size.value - extent
        if all(not isinstance(node, Var) for node in walk(start)):
            known = Bounds().of(start)
            low, high = known.low, known.high
        first, last = first * size.value + low, last * size.value + high + extent - 1
    return first, last + 1


def elements(buffer: Buffer) -> int:
    """Return how many elements a buffer of constant shape has."""
    extents = [dim for dim in buffer.shape if isinstance(dim, int)]
    assert len(extents) == len(buffer.shape), "layers of a model have constant shapes"
    return math.prod(extents)
