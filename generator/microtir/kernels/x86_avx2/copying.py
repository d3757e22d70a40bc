"""Copies of rows into scratch, and what they cost."""

from __future__ import annotations

from microtir.dtype import DType
from microtir.kernels.common import convolution_geometry, statements
from microtir.kernels.common.made_once import made_once
from microtir.kernels.x86_avx2.micro_kernel import describe
from microtir.schedule import KernelDescription
from microtir.tir import ir


@made_once
def copy(count: int) -> KernelDescription:
    """Copy `count` values; parameters: from, to."""
    x, y = ir.Buffer("x", (count,), DType.INT8), ir.Buffer("y", (count,), DType.INT8)
    return describe(
        f"copy_{count}",
        f"Copies {count} values",
        (x, y),
        y,
        statements.loop("i", 0, count, lambda i: statements.store(y, (i,), statements.load(x, i))),
        "kernels/vector/copy.j2",
        {"part": "copy", "count": str(count)},
        stack_bytes=0,
    )


def copy_cost(geometry: convolution_geometry.Geometry, calls: int) -> int:
    """Return the instructions of copying the rows behind so many calls, with their borders."""
    rows = geometry.windows.rows.reach(-(-geometry.output.height // calls))
    return calls * rows * (geometry.copied_step // 32 + 20)
