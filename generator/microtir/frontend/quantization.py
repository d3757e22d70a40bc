"""Quantisation of a file's tensor into the form of the graph IR."""

from __future__ import annotations

import math

from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend.tflite_file import FileTensor
from microtir.graph.ir import Quantization
from microtir.tir.dtype import DType


def read_quantization(tensor: FileTensor, dtype: DType, file: str) -> Quantization | None:
    """The quantisation of a tensor, None if it has none.

    Float tensors have none: converters leave value ranges and empty tables behind.

    Raises:
        ModelFileError: scales, zero points or axis break the format.
        UnsupportedModelError: the quantisation is not affine.
    """
    stored = tensor.quantization
    where = f"{file}: {tensor.label}"
    if stored.is_custom:
        raise UnsupportedModelError(
            "its quantisation is a custom one",
            where=where,
            legal="affine: scales and zero points",
            fix="convert the model with the standard integer quantisation",
        )
    if not stored.scales or not dtype.is_int:
        return None
    _check_scales(stored.scales, where)
    axis = _axis(tensor, where)
    zero_points = stored.zero_points or (0,)
    if len(zero_points) == 1:
        zero_points *= len(stored.scales)
    if len(zero_points) != len(stored.scales):
        raise _broken(
            f"{len(zero_points)} zero points for {len(stored.scales)} scales",
            where,
            "none, one, or as many as scales",
        )
    for zero_point in zero_points:
        if not dtype.min <= zero_point <= dtype.max:
            raise _broken(
                f"zero point {zero_point} is no {dtype.value}", where, f"{dtype.min} to {dtype.max}"
            )
    return Quantization(stored.scales, zero_points, axis)


def _check_scales(scales: tuple[float, ...], where: str) -> None:
    for index, scale in enumerate(scales):
        if not (math.isfinite(scale) and scale > 0.0):
            raise _broken(f"scale {index} is {scale}", where, "finite and above 0")


def _axis(tensor: FileTensor, where: str) -> int | None:
    """The axis of per-channel scales; None for one scale."""
    scales, axis = tensor.quantization.scales, tensor.quantization.axis
    if len(scales) == 1:
        return None
    if not 0 <= axis < len(tensor.shape):
        raise _broken(
            f"scales run along axis {axis} of a tensor with {len(tensor.shape)} dimensions",
            where,
            f"0 to {len(tensor.shape) - 1}" if tensor.shape else "one scale",
        )
    if len(scales) != tensor.shape[axis]:
        raise _broken(
            f"{len(scales)} scales along axis {axis} of shape {tensor.shape}",
            where,
            f"1, or {tensor.shape[axis]}",
        )
    return axis


def _broken(what: str, where: str, legal: str) -> MicrotirError:
    return ModelFileError(what, where=where, legal=legal, fix="convert the model again")
