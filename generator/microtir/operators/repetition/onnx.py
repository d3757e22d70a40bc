"""Read ONNX's operators that repeat elements."""

from __future__ import annotations

from microtir.graph.ir import Tensor
from microtir.operators.common import onnx_operands, shapes
from microtir.operators.repetition.definition import Tile, aligned


def tile(node: onnx_operands.OnnxNode) -> Tensor:
    """Read Tile."""
    x, multiples = node.input(0), node.integers(1, "the repeats")
    if len(multiples) != len(x.shape) or min(multiples, default=1) < 1:
        raise node.malformed(
            f"repeats {multiples} of the shape {x.shape}", "a number for each axis"
        )
    return node.emit(Tile(multiples), x) if multiples else x


def expand(node: onnx_operands.OnnxNode) -> Tensor:
    """Read Expand: as the tensor broadcasts with a shape."""
    x, wanted = node.input(0), node.integers(1, "the shape")
    shape = shapes.broadcast_of(x.shape, wanted)
    pairs = zip(shape, aligned(x.shape, len(shape)), strict=True)
    multiples = tuple(extent // own if own else 1 for extent, own in pairs)
    return x if shape == x.shape else node.emit(Tile(multiples), x)


ONNX_READERS = (
    onnx_operands.OnnxReader("Tile", tile, (2, 2)),
    onnx_operands.OnnxReader("Expand", expand, (2, 2)),
)
