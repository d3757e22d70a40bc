"""Read PyTorch's sampling of images at computed places."""

from __future__ import annotations

import math

import numpy as np

from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers

_MODES = ("linear", "nearest", "cubic")
_PADDING = ("zeros", "border", "reflection")


def grid_sample(node: TorchNode) -> Tensor:
    """Read grid_sampler: an image (N, C, ...) at places (N, ..., axes) between -1 and 1."""
    mode, padding = node.integer("interpolation_mode"), node.integer("padding_mode")
    if not (0 <= mode < len(_MODES) and 0 <= padding < len(_PADDING)):
        raise node.malformed(f"interpolation {mode}, padding {padding}")
    return node.onnx(
        "GridSample", node.tensor("input"), node.tensor("grid"), mode=_MODES[mode],
        padding_mode=_PADDING[padding], align_corners=int(node.flag("align_corners")),
    )  # fmt: skip


def affine_grid(node: TorchNode) -> Tensor:
    """Read affine_grid_generator: the places of a result, moved by matrices (N, axes, axes + 1)."""
    theta, sizes = node.tensor("theta", 3), node.integers("size")[2:]
    node.first.check_room(*sizes, len(sizes) + 1)
    lines = []
    for size in sizes:
        ends = 1.0 if node.flag("align_corners") else 1.0 - 1.0 / size
        lines.append(np.linspace(-ends, ends, size) if size > 1 else np.zeros(1))
    places = np.meshgrid(*lines, indexing="ij")[::-1]
    table = np.stack([*places, np.ones(sizes)], axis=-1).astype(np.float32)
    rows = node.constant(table.reshape(math.prod(sizes), len(sizes) + 1))
    product = node.onnx("MatMul", rows, node.onnx("Transpose", theta, perm=(0, 2, 1)))
    return node.reshaped(product, (theta.shape[0], *sizes, len(sizes)))


TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(
        grid_sample, "input grid interpolation_mode padding_mode align_corners",
        "grid_sampler", "grid_sampler_2d", "grid_sampler_3d",
    ),
    *readers(affine_grid, "theta size align_corners", "affine_grid_generator"),
)  # fmt: skip
