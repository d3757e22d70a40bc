"""Quantisation of a file's tensor into the form of the graph IR."""

from __future__ import annotations

import math

import numpy as np

from microtir.dtype import DType
from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend.tflite_file import FileTensor
from microtir.graph.ir import Quantization

# Weights of a channel that training gave up decay to the smallest numbers, and their scale with
# them; the kernels make 0 of it.  Activations divide by their scale, which has to stay finite.
_ANY_SCALES = (2.0**-149, (2.0 - 2.0**-23) * 2.0**127)
_ACTIVATION_SCALES = (2.0**-149, 2.0**100)


def read_quantization(tensor: FileTensor, dtype: DType, file: str) -> Quantization | None:
    """Return the quantisation of a tensor, None if it has none.

    Float tensors have none: converters leave value ranges and empty tables behind.  Neither have
    wide integers whose scales break the format: they are biases, shapes and indices, in which
    nobody looks for scales, and converters copy the axis of the weights to biases.

    Raises:
        ModelFileError: scales, zero points or axis break the format.
        UnsupportedModelError: the quantisation is not affine.
    """
    if not dtype.is_int:
        return None
    if dtype.bytes < 4:
        return _quantization(tensor, dtype, f"{file}: {tensor.label}")
    try:
        return _quantization(tensor, dtype, "")
    except MicrotirError:
        return None


def _quantization(tensor: FileTensor, dtype: DType, where: str) -> Quantization | None:
    stored = tensor.quantization
    if stored.is_custom:
        raise UnsupportedModelError(
            "its quantisation is a custom one",
            where=where,
            legal="affine: scales and zero points",
            fix="convert the model with the standard integer quantisation",
        )
    if not stored.scales:
        return None
    axis = _axis(tensor, where)
    zero_points = stored.zero_points or (0,)
    if len(zero_points) == 1:
        zero_points *= len(stored.scales)
    if len(zero_points) != len(stored.scales):
        raise _broken(
            f"{len(zero_points)} zero points for {len(stored.scales)} scales",
            where,
            "none, one, or one for each scale",
        )
    low, high = dtype.min, dtype.max
    for zero_point in zero_points:
        if not low <= zero_point <= high:
            raise _broken(
                f"the zero point {zero_point} does not fit {dtype.value}", where, f"{low} to {high}"
            )
    quantization = Quantization(stored.scales, zero_points, axis)
    _check_scales(tensor, dtype, quantization, where)
    return quantization


def _check_scales(tensor: FileTensor, dtype: DType, quant: Quantization, where: str) -> None:
    low, high = _ACTIVATION_SCALES if tensor.data is None else _ANY_SCALES
    for index, scale in enumerate(quant.scales):
        if low <= scale <= high or (scale == 0.0 and _is_zero(tensor, dtype, quant, index)):
            continue
        legal = f"{low:g} to {high:g}"
        if tensor.data is not None:
            legal += ", and 0 where all that is stored is the zero point"
        raise _broken(f"scale {index} is {scale}", where, legal)


def _is_zero(tensor: FileTensor, dtype: DType, quant: Quantization, index: int) -> bool:
    """Return whether all that a scale stands for is the real number 0."""
    stored = np.dtype(dtype.value).newbyteorder("<")
    if tensor.data is None or len(tensor.data) != math.prod(tensor.shape) * stored.itemsize:
        return False
    values = np.frombuffer(tensor.data, stored).reshape(tensor.shape)
    if quant.axis is not None:
        values = np.take(values, index, axis=quant.axis)
    return bool((values == quant.zero_points[index]).all())


def _axis(tensor: FileTensor, where: str) -> int | None:
    """Return the axis of per-channel scales; None for one scale."""
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
