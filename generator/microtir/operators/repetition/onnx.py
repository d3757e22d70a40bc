"""Read ONNX's operators that repeat elements."""

from __future__ import annotations

from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_operands import OnnxNode, OnnxReader
from microtir.operators.common.shapes import broadcast_of
from microtir.operators.repetition.definition import Tile, aligned


def tile(node: OnnxNode) -> Tensor:
    """Read Tile."""
    x, multiples = node.input(0), node.integers(1, "the repeats")
    if len(multiples) != len(x.shape) or min(multiples, default=1) < 1:
        raise node.malformed(
            f"repeats {multiples} of the shape {x.shape}", "a number for each axis"
        )
    return node.emit(Tile(multiples), x) if multiples else x


def expand(node: OnnxNode) -> Tensor:
    """Read Expand: as the tensor broadcasts with a shape."""
    x, wanted = node.input(0), node.integers(1, "the shape")
    shape = broadcast_of(x.shape, wanted)
    pairs = zip(shape, aligned(x.shape, len(shape)), strict=True)
    multiples = tuple(extent // own if own else 1 for extent, own in pairs)
    return x if shape == x.shape else node.emit(Tile(multiples), x)


ONNX_READERS = (
    OnnxReader("Tile", tile, (2, 2)),
    OnnxReader("Expand", expand, (2, 2)),
)
