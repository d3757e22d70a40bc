"""Read PyTorch's convolutions, and transposed ones."""

from __future__ import annotations

from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_operands import AttributeValue
from microtir.operators.common.onnx_parts import along
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers


def conv(node: TorchNode) -> Tensor:
    """Read conv1d, conv2d or conv3d: image (N, C, ...) or (C, ...), weights (O, C / group, ...)."""
    return _on_batch(node, "Conv", pads=_pads(node, len(node.tensor("weight").shape) - 2))


def conv_transpose(node: TorchNode) -> Tensor:
    """Read conv_transpose1d, 2d or 3d: weights (C, O / group, ...)."""
    axes = len(node.tensor("weight").shape) - 2
    return _on_batch(
        node, "ConvTranspose", pads=node.integers("padding", (0,) * axes, axes) * 2,
        output_padding=node.integers("output_padding", (0,) * axes, axes),
    )  # fmt: skip


def convolution(node: TorchNode) -> Tensor:
    """Read convolution, which says whether it is transposed."""
    return conv_transpose(node) if node.flag("transposed") else conv(node)


def _on_batch(node: TorchNode, operator: str, **attributes: AttributeValue) -> Tensor:
    """Return the convolution of a batch, or of a single image as that of a batch of one."""
    image, weights = node.tensor("input"), node.tensor("weight", 3)
    axes = len(weights.shape) - 2
    is_single = len(image.shape) == axes + 1
    if is_single:
        image = node.reshaped(image, (1, *image.shape))
    groups = node.integer("groups", 1)
    # Convolutions over a volume have no groups: each is one by itself.
    parts = groups if axes == _VOLUME and operator == "Conv" and groups > 1 else 1
    bias = node.optional_tensor("bias")
    results = [
        node.onnx(
            operator, _part(node, image, 1, number, parts), _part(node, weights, 0, number, parts),
            None if bias is None else _part(node, bias, 0, number, parts),
            strides=node.integers("stride", (1,) * axes, axes),
            dilations=node.integers("dilation", (1,) * axes, axes),
            group=groups // parts, **attributes,
        )
        for number in range(parts)
    ]  # fmt: skip
    result = results[0] if parts == 1 else node.onnx("Concat", *results, axis=1)
    return node.reshaped(result, result.shape[1:]) if is_single else result


_VOLUME = 3  # axes


def _part(node: TorchNode, x: Tensor, axis: int, number: int, parts: int) -> Tensor:
    """Return one of several equal parts of an axis."""
    size, rest = divmod(node.extent(x, axis), parts)
    if rest or not size:
        raise node.malformed(
            f"{parts} groups for {x.shape[axis]} channels", "a divisor of the number of channels"
        )
    return along(node.first, x, axis, number * size, size)


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


_ARGUMENTS = "input weight bias stride padding dilation groups"

TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(
        conv, _ARGUMENTS,
        *(f"conv{axes}d.{form}" for axes in (1, 2, 3) for form in ("default", "padding")),
    ),
    *readers(
        conv_transpose, f"{_ARGUMENTS} output_padding",
        "conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input",
    ),
    *readers(convolution, f"{_ARGUMENTS} transposed output_padding", "convolution"),
)  # fmt: skip
