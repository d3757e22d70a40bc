"""Images of planes become images of pixels: what a caller gives in ONNX's order, row by row.

Each row of the output is made of one row of each plane, so that the pixels which a convolution
reads need a ring of rows, and the image as a whole is never there a second time.
"""

from __future__ import annotations

from microtir import te
from microtir.graph.ir import Node
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.statements import each, load, loop, seq, store
from microtir.operators.common.rows import RowWindow
from microtir.operators.movement.definition import Transpose
from microtir.plan.ir import Calls, Refusal
from microtir.tir import ir

_TO_PIXELS = (0, 2, 3, 1)
_PIXELS = 4  # of a turn of the loop
_MOST_CHANNELS = 4  # what is written out for a turn is code
_CODE = 16  # bytes of a load, a store and their addresses in Thumb-2, as compiled


class Interleave(Kernel):
    """Channels of an image, moved last; a turn of the loop moves a few pixels."""

    name = "interleave"
    operators = (Transpose,)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: one image of a few planes, of several pixels each."""
        op, x = node.attributes(Transpose), node.inputs[0]
        if op.permutation != _TO_PIXELS:
            return Refusal.PLANES
        if x.shape[0] != 1:
            return Refusal.IMAGES
        return None if 1 < x.shape[1] <= _MOST_CHANNELS and x.shape[3] > 1 else Refusal.PLANES

    def window(self, node: Node) -> RowWindow | None:
        """Return all planes, which are the rows of the input: each output row reads all of them."""
        return RowWindow(stride=0, offset=0, extent=node.inputs[0].type.rows)

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return a load and a store for each element, and a loop over a few pixels."""
        _, channels, height, width = node.inputs[0].shape
        return height * (10 + width * 2 * channels + 5 * -(-width // _PIXELS))

    def code_bytes(self, node: Node) -> int:
        return _CODE * node.inputs[0].shape[1] * _PIXELS

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        _, channels, _, width = layer.node.inputs[0].shape
        x, y = layer.input_rows(0), layer.output_rows()

        def pixel(row: te.Expr, column: te.Expr) -> ir.Stmt:
            return seq(
                *(
                    store(y.buffer, (y.slot(row), column, ch), load(x.buffer, ch, row, column))
                    for ch in range(channels)
                )
            )

        def run(row: te.Expr, first: te.Expr, count: int) -> ir.Stmt:
            return seq(*(pixel(row, first + place) for place in range(count)))

        def pixels(row: te.Expr) -> ir.Stmt:
            turns, rest = divmod(width, _PIXELS)
            whole = each("turn", turns, lambda turn: run(row, turn * _PIXELS, _PIXELS))
            return seq(*([whole] if turns else []), run(row, te.as_expr(width - rest), rest))

        return layer.function(name, None, loop("row", layer.y0, layer.y1, pixels))
