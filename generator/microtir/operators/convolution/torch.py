"""Read PyTorch's convolutions."""

from __future__ import annotations

from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader

_ARGUMENTS = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")


def conv(node: TorchNode) -> Tensor:
    """Read conv1d, conv2d or conv3d: image (N, C, ...) or (C, ...), weights (O, C / group, ...)."""
    image, weights = node.tensor("input"), node.tensor("weight")
    axes = len(weights.shape) - 2
    is_single = len(image.shape) == axes + 1
    if is_single:
        image = node.reshaped(image, (1, *image.shape))
    dilations = node.integers("dilation", (1,) * axes, axes)
    result = node.onnx(
        "Conv", image, weights, node.optional_tensor("bias"),
        strides=node.integers("stride", (1,) * axes, axes), dilations=dilations,
        group=node.integer("groups", 1), pads=_pads(node, axes),
    )  # fmt: skip
    return node.reshaped(result, result.shape[1:]) if is_single else result


def _pads(node: TorchNode, axes: int) -> tuple[int, ...]:
    """Return the padding before and after each axis; "same" puts an odd element behind."""
    if not isinstance(node.arguments.get("padding"), str):
        return node.integers("padding", (0,) * axes, axes) * 2
    if node.text("padding") == "valid":
        return (0,) * (2 * axes)
    taps = node.tensor("weight").shape[2:]
    dilations = node.integers("dilation", (1,) * axes, axes)
    totals = [step * (size - 1) for step, size in zip(dilations, taps, strict=True)]
    before = tuple(total // 2 for total in totals)
    return (*before, *(total - first for total, first in zip(totals, before, strict=True)))


TORCH_READERS = tuple(
    TorchReader(f"aten.conv{axes}d.{overload}", conv, _ARGUMENTS)
    for axes in (1, 2, 3)
    for overload in ("default", "padding")
)
