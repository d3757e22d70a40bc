"""Read PyTorch's pooling."""

from __future__ import annotations

from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader


def max_pool(node: TorchNode) -> Tensor:
    """Read max_pool1d, max_pool2d or max_pool3d: image (N, C, ...) or (C, ...)."""
    axes = int(node.target.partition("pool")[2][0])
    image = node.tensor("self")
    is_single = len(image.shape) == axes + 1
    if is_single:
        image = node.reshaped(image, (1, *image.shape))
    taps = node.integers("kernel_size", count=axes)
    result = node.onnx(
        "MaxPool", image, kernel_shape=taps, strides=node.integers("stride", taps, axes),
        pads=node.integers("padding", (0,) * axes, axes) * 2,
        dilations=node.integers("dilation", (1,) * axes, axes),
        ceil_mode=int(node.flag("ceil_mode", False)),
    )  # fmt: skip
    return node.reshaped(result, result.shape[1:]) if is_single else result


def adaptive_average_pool(node: TorchNode) -> Tensor:
    """Read adaptive_avg_pool2d to one element: the mean over each plane."""
    x = node.tensor("self")
    if node.integers("output_size", count=2) != (1, 1):
        raise node.unsupported(
            f"it pools to {node.integers('output_size')}",
            "one element for a plane",
            "use a pooling with a window of a fixed size",
        )
    return node.onnx("ReduceMean", x, node.ints(-2, -1), keepdims=1)


TORCH_READERS = (
    TorchReader(
        "aten.max_pool2d.default",
        max_pool,
        ("self", "kernel_size", "stride", "padding", "dilation", "ceil_mode"),
    ),
    TorchReader("aten.adaptive_avg_pool2d.default", adaptive_average_pool, ("self", "output_size")),
)
