"""The regions that a call touches of what it is given, and the elements that they span."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from microtir.tir import ir
from microtir.tir.analysis.bounds import Bounds
from microtir.tir.visitor import walk


def regions(
    s: ir.KernelCall | ir.ExternCall,
) -> Iterator[tuple[ir.BufferArgument, ir.Region, bool]]:
    """Yield each buffer that a call is given, a region from there on, and whether it is written.

    What is written comes first: any write of a micro-kernel may come before any read.
    """
    if isinstance(s, ir.KernelCall):
        params, touched = s.meaning.params, (s.contract.writes, s.contract.reads)
    else:
        params, function = s.function.params, s.function
        whole = [_whole(param) for param in params if isinstance(param, ir.Buffer)]
        touched = (
            tuple(region for region in whole if region.buffer in function.writes),
            tuple(region for region in whole if region.buffer in function.reads),
        )
    arguments = dict(zip(params, s.args, strict=True))
    for is_write, some in zip((True, False), touched, strict=True):
        for region in some:
            argument = arguments[region.buffer]
            if isinstance(argument, ir.BufferArgument):
                yield argument, region, is_write


def _whole(buffer: ir.Buffer) -> ir.Region:
    extents = tuple(dim for dim in buffer.shape if isinstance(dim, int))
    return ir.Region(buffer, (ir.IntImm(0),) * len(extents), extents)


def reach(
    region: ir.Region, arguments: Mapping[ir.Param, ir.BufferArgument | ir.Expr]
) -> tuple[int, int]:
    """Return elements [first, stop) of a kernel's parameter that a region lies in.

    Args:
        region: of the parameter.
        arguments: arguments of the call; extents that are parameters are numbers there.
    """
    first = last = 0
    for start, extent, dim in zip(region.start, region.extent, region.buffer.shape, strict=True):
        size = ir.IntImm(dim) if isinstance(dim, int) else arguments[dim]
        assert isinstance(size, ir.IntImm), "kernels of layers are given constant shapes"
        low, high = 0, size.value - extent
        if all(not isinstance(node, ir.Var) for node in walk(start)):
            known = Bounds().of(start)
            low, high = known.low, known.high
        first, last = first * size.value + low, last * size.value + high + extent - 1
    return first, last + 1


def elements(buffer: ir.Buffer) -> int:
    """Return how many elements a buffer of constant shape has."""
    extents = [dim for dim in buffer.shape if isinstance(dim, int)]
    assert len(extents) == len(buffer.shape), "layers of a model have constant shapes"
    return math.prod(extents)
