"""Quantisation of a file's tensor into the form of the graph IR."""

from __future__ import annotations

from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend.tflite_file import FileTensor
from microtir.graph.ir import Quantization
from microtir.tir.dtype import DType

# Weights of a channel that training gave up decay to the smallest numbers, and their scale with
# them; the kernels make 0 of it.  Activations divide by their scale, which has to stay finite.
_ANY_SCALES = (2.0**-149, (2.0 - 2.0**-23) * 2.0**127)
_ACTIVATION_SCALES = (2.0**-100, 2.0**100)


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
    is_activation = tensor.data is None
    _check_scales(stored.scales, _ACTIVATION_SCALES if is_activation else _ANY_SCALES, where)
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
    low, high = dtype.min, dtype.max
    for zero_point in zero_points:
        if not low <= zero_point <= high:
            raise _broken(f"zero point {zero_point} is no {dtype.value}", where, f"{low} to {high}")
    return Quantization(stored.scales, zero_points, axis)


def _check_scales(scales: tuple[float, ...], legal: tuple[float, float], where: str) -> None:
    low, high = legal
    for index, scale in enumerate(scales):
        if not low <= scale <= high:
            raise _broken(f"scale {index} is {scale}", where, f"{low:g} to {high:g}")


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
