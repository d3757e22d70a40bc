"""Read PyTorch's interpolation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_operands import AttributeValue
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers


def _resized(**attributes: AttributeValue) -> Callable[[TorchNode], Tensor]:
    """Return what reads an interpolation of all axes of an image but the first two."""

    def read(node: TorchNode) -> Tensor:
        x = node.tensor("input" if node.has("input") else "self")
        axes = len(x.shape) - 2
        scales, sizes = _scales(node, axes), _output_size(node, axes)
        extents = [
            size if scale is None else int(np.float32(size * scale))
            for size, scale in zip(x.shape[2:], scales, strict=True)
        ]
        by_scale = None not in scales and (sizes is None or tuple(extents) == sizes)
        if not by_scale and sizes is None:
            raise node.malformed("it has neither sizes nor scales")
        places = {}
        if node.flag("align_corners", False):
            places["coordinate_transformation_mode"] = "align_corners"
            by_scale = False
            sizes = tuple(extents) if sizes is None else sizes
        factors, shape = None, None
        if by_scale:
            factors = node.constant(np.array([1.0, 1.0, *scales], np.float32))
        else:
            assert sizes is not None
            shape = node.ints(*x.shape[:2], *sizes)
        return node.onnx("Resize", x, None, factors, shape, **{**attributes, **places})

    return read


def _output_size(node: TorchNode, axes: int) -> tuple[int, ...] | None:
    return node.integers("output_size", count=axes) if node.has("output_size") else None


def _scales(node: TorchNode, axes: int) -> tuple[float | None, ...]:
    """Return the factor of each axis; None of one that has none."""
    if node.has("scale_factors"):
        factors = node.numbers("scale_factors")
        return factors * axes if len(factors) == 1 else factors
    names = ("scales",) if axes == 1 else ("scales_d", "scales_h", "scales_w")[-axes:]
    stated = (node.optional_number(name) for name in names)
    return tuple(None if factor is None else float(factor) for factor in stated)


_ARGUMENTS = "self input output_size align_corners scale_factors scales scales_d scales_h scales_w"

_NEAREST = _resized(
    mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
)
_EXACT = _resized(
    mode="nearest", coordinate_transformation_mode="half_pixel", nearest_mode="round_prefer_ceil"
)
_LINEAR = _resized(mode="linear", coordinate_transformation_mode="half_pixel")
_CUBIC = _resized(mode="cubic", coordinate_transformation_mode="half_pixel", cubic_coeff_a=-0.75)
_SMOOTH_LINEAR = _resized(
    mode="linear", coordinate_transformation_mode="half_pixel", antialias=1, exclude_outside=1
)
_SMOOTH_CUBIC = _resized(
    mode="cubic", coordinate_transformation_mode="half_pixel", cubic_coeff_a=-0.5, antialias=1,
    exclude_outside=1,
)  # fmt: skip


def _both(name: str) -> tuple[str, str]:
    return f"{name}.vec", f"{name}.default"


TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(
        _NEAREST, _ARGUMENTS, *(form for n in (1, 2, 3) for form in _both(f"upsample_nearest{n}d"))
    ),
    *readers(
        _EXACT, _ARGUMENTS,
        *(form for n in (1, 2, 3) for form in _both(f"_upsample_nearest_exact{n}d")),
    ),
    *readers(
        _LINEAR, _ARGUMENTS,
        *(form for name in ("linear1d", "bilinear2d", "trilinear3d")
          for form in _both(f"upsample_{name}")),
    ),
    *readers(_CUBIC, _ARGUMENTS, *_both("upsample_bicubic2d")),
    *readers(_SMOOTH_LINEAR, _ARGUMENTS, *_both("_upsample_bilinear2d_aa")),
    *readers(_SMOOTH_CUBIC, _ARGUMENTS, *_both("_upsample_bicubic2d_aa")),
)  # fmt: skip
