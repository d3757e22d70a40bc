"""Images of ONNX, (N, C, H, W), for operators that want channels last, and back.

Each operator of images takes and gives the layout of ONNX, so that a reader knows nothing of its
neighbours.  What two of them do between each other cancels out, which a pass on the graph finds.
"""

from __future__ import annotations

from microtir.errors import ExportProblem
from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.movement.definition import Reshape, Transpose


def channels_last(node: OnnxNode, image: Tensor) -> Tensor:
    """Return (N, C, ...) as (N, H, W, C); a line of W is an image of one row."""
    rank = len(image.shape)
    moved = node.emit(Transpose((0, *range(2, rank), 1)), image)
    if rank != 3:
        return moved
    n, w, c = moved.shape
    return node.emit(Reshape(), moved, shape=(n, 1, w, c))


def channels_first(node: OnnxNode, image: Tensor, rank: int) -> Tensor:
    """Return (N, H, W, C) as ONNX has it; of rank 3 the image is a line."""
    if rank == 3:
        n, h, w, c = image.shape
        image = node.emit(Reshape(), image, shape=(n, h * w, c))
    last = len(image.shape) - 1
    return node.emit(Transpose((0, last, *range(1, last))), image)


def require_channels_first(node: OnnxNode) -> None:
    """Refuse one of com.microsoft's operators over images with channels last."""
    if node.integer("channels_last", 0):
        raise node.unsupported(
            "its attribute 'channels_last' is 1",
            "channels first",
            "export without onnxruntime's layout optimisations",
            ExportProblem.FUSED_OPERATOR,
        )
