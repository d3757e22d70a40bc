"""Outputs of products as their kernels write them: pixels of NHWC, or columns of planes."""

from __future__ import annotations

from microtir import te
from microtir.kernels.arm_dsp.borders_kernels import borders, takes
from microtir.kernels.arm_dsp.gemm_kernels import PlaneRow
from microtir.kernels.common.layer import Rows
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.statements import seq
from microtir.operators.common.rows import Extents
from microtir.plan.ir import LayoutKind, Refusal
from microtir.tir import ir


def planes_refusal(output: Extents) -> Refusal | None:
    """Return what speaks against writing planes, whatever the product."""
    if output.images != 1:
        return Refusal.IMAGES
    return None if takes(output.width) else Refusal.SIZES


def borders_cost(output: Extents, writes: LayoutKind) -> int:
    """Return the instructions that set the borders of all rows, if they are planes."""
    return 0 if writes is LayoutKind.NHWC else output.height * (3 * output.channels // 2 + 40)


class Outputs:
    """The output of a layer; `row` says how planes lie, None stands for NHWC.

    Args:
        rows: of the layer's output.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._planes = rows.layout.planes
        self.row = PlaneRow(rows.buffer.dtype, self._planes.columns) if self._planes else None

    def at(self, row: te.Expr, column: te.Expr) -> tuple[ir.BufferArgument | te.Expr, ...]:
        """Return what a kernel is given that writes from a column of a row on."""
        if self._planes is None:
            return (self._rows.at(row, column, 0),)
        return self._rows.row(row), self._planes.before + column

    def borders(self, row: te.Expr) -> ir.Stmt:
        """Emit what whoever reads planes finds beside the image of a row: the zero point."""
        if self._planes is None:
            return seq()
        output, zero = Extents.of(self._rows.type), self._rows.type.quant.zero_point
        dtype = self._rows.buffer.dtype
        kernel = borders(self._planes, output.channels, output.width, zero, dtype)
        return call(kernel, self._rows.row(row))
