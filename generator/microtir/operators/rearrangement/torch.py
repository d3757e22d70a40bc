"""Read PyTorch's moves between channels and rows and columns."""

from __future__ import annotations

import math

from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers


def _moved(node: TorchNode, operator: str, block: int) -> Tensor:
    """Return (..., C, H, W) rearranged, as a batch of images."""
    x = node.tensor("self")
    images = node.reshaped(x, (math.prod(x.shape[:-3]), *x.shape[-3:]))
    result = node.onnx(operator, images, blocksize=block, mode="CRD")
    return node.reshaped(result, (*x.shape[:-3], *result.shape[1:]))


def pixel_shuffle(node: TorchNode) -> Tensor:
    """Read pixel_shuffle."""
    return _moved(node, "DepthToSpace", node.integer("upscale_factor"))


def pixel_unshuffle(node: TorchNode) -> Tensor:
    """Read pixel_unshuffle."""
    return _moved(node, "SpaceToDepth", node.integer("downscale_factor"))


def channel_shuffle(node: TorchNode) -> Tensor:
    """Read channel_shuffle: one channel of each group in turn."""
    x, groups = node.tensor("self"), node.integer("groups")
    if groups < 1 or len(x.shape) < 2 or x.shape[1] % groups:
        raise node.malformed(
            f"{groups} groups for the channels of the shape {x.shape}", "a divisor"
        )
    split = node.reshaped(x, (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]))
    order = (0, 2, 1, *range(3, len(split.shape)))
    return node.reshaped(node.onnx("Transpose", split, perm=order), x.shape)


TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(pixel_shuffle, "self upscale_factor", "pixel_shuffle"),
    *readers(pixel_unshuffle, "self downscale_factor", "pixel_unshuffle"),
    *readers(channel_shuffle, "self groups", "channel_shuffle", "native_channel_shuffle"),
)
