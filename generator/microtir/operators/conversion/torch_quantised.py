"""Read the conversions of PT2E, PyTorch's quantisation of exported programs, as ONNX's.

`torch.ops.quantized_decomposed` and torchao state the scale, the zero point and the range of the
stored integers at each conversion.
"""

from __future__ import annotations

import math

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Tensor
from microtir.operators.common import onnx_quantized
from microtir.operators.common.onnx_quantized import Scaling
from microtir.operators.common.torch_operands import TorchNode, TorchReader

_RANGE = ("quant_min", "quant_max")


def quantize(node: TorchNode) -> Tensor:
    """Read quantize_per_tensor, quantize_per_channel and quantize_affine."""
    x, dtype = node.cast(node.tensor("input"), DType.FLOAT32), _dtype(node, "output_dtype")
    scaling = _scaling(node, dtype)
    limits = _limits(node, dtype)
    if limits != (dtype.min, dtype.max):
        x = _clamped(node, x, scaling, limits)
    return onnx_quantized.quantise(node.first, x, scaling, dtype, by_reciprocal=True)


def dequantize(node: TorchNode) -> Tensor:
    """Read dequantize_per_tensor, dequantize_per_channel and dequantize_affine."""
    x, dtype = node.tensor("input"), _dtype(node, "input_dtype")
    if x.dtype is not dtype:
        raise node.malformed(f"it has integers of {x.dtype.value}", dtype.value)
    _limits(node, dtype)
    return onnx_quantized.dequantise(node.first, x, _scaling(node, dtype))


def _dtype(node: TorchNode, of_torchao: str) -> DType:
    """Return the type of the stored integers, which torchao has under another name."""
    dtype = node.dtype("dtype") or node.dtype(of_torchao)
    if dtype is None or not dtype.is_int:
        raise node.malformed("its integers have no integer type")
    return dtype


def _limits(node: TorchNode, dtype: DType) -> tuple[int, int]:
    """Return the least and the greatest integer that are stored."""
    ends = zip(_RANGE, (dtype.min, dtype.max), strict=True)
    low, high = (
        int(_known(node, name).reshape(())) if node.has(name) else end for name, end in ends
    )
    if not dtype.min <= low < high <= dtype.max:
        raise node.malformed(f"its range is {low} to {high}", f"within {dtype.min} to {dtype.max}")
    return low, high


def _scaling(node: TorchNode, dtype: DType) -> Scaling:
    """Return the scale and zero point, of the tensor or of each index of an axis.

    Raises:
        ModelFileError: a scale is not finite and above 0, or a zero point is none of the type.
    """
    if node.has("block_size"):
        return _scaling_of_blocks(node, dtype)
    is_per_channel = node.has("scales")
    names = ("scales", "zero_points") if is_per_channel else ("scale", "zero_point")
    scale, zero = _checked(node, dtype, *names)
    if is_per_channel and (scale.ndim != 1 or zero.shape != scale.shape):
        raise node.malformed(f"scales of shape {scale.shape} and zero points of {zero.shape}")
    axis = node.axis(node.integer("axis"), len(node.tensor("input").shape)) if is_per_channel else 0
    if not is_per_channel and (scale.size, zero.size) != (1, 1):
        raise node.malformed(f"{scale.size} scales and {zero.size} zero points", "one of each")
    shape = scale.shape if is_per_channel else ()
    return Scaling(*_constants(node, dtype, scale, zero, shape), axis=axis)


def _scaling_of_blocks(node: TorchNode, dtype: DType) -> Scaling:
    """Return the scales of torchao, which has one for each block of a tensor.

    Raises:
        UnsupportedModelError: blocks are neither all of the tensor, nor all at a place of an axis,
            nor runs along one axis.
    """
    shape, blocks = node.tensor("input").shape, node.integers("block_size")
    scale, zero = _checked(node, dtype, "scale", "zero_point")
    fits = len(blocks) == len(shape) and all(
        block > 0 and size % block == 0 for size, block in zip(shape, blocks, strict=True)
    )
    counts = tuple(n // block for n, block in zip(shape, blocks, strict=True)) if fits else ()
    if not fits or scale.size != math.prod(counts) or zero.size != scale.size:
        raise node.malformed(
            f"{scale.size} scales for blocks of shape {blocks} in a tensor of shape {shape}"
        )
    cut = [axis for axis, count in enumerate(counts) if count > 1]
    if not cut:
        return Scaling(*_constants(node, dtype, scale, zero, ()))
    if len(cut) == 1 and blocks[cut[0]] == 1:
        return Scaling(*_constants(node, dtype, scale, zero, (scale.size,)), axis=cut[0])
    wide = [axis for axis, block in enumerate(blocks) if block > 1]
    if len(wide) != 1:
        raise node.unsupported(
            f"it has a scale for each block of shape {blocks} in a tensor of shape {shape}",
            "one scale, one for each index of an axis, or one for each group along one axis",
            "quantise per tensor or per channel",
        )
    parts = _constants(node, dtype, scale, zero, counts)
    return Scaling(*parts, axis=wide[0], block=blocks[wide[0]])


def _checked(node: TorchNode, dtype: DType, scales: str, zeros: str) -> tuple[Array, Array]:
    """Return scales and zero points that are numbers with which integers can be stored."""
    scale = _known(node, scales).astype(np.float32)
    zero = _known(node, zeros) if node.has(zeros) else np.zeros(scale.shape, np.int64)
    if not (np.isfinite(scale) & (scale > 0)).all() or not scale.size:
        raise node.malformed("it has a scale that is not a finite number above 0")
    if zero.dtype.kind not in "iu" or not ((zero >= dtype.min) & (zero <= dtype.max)).all():
        raise node.malformed("it has a zero point that does not fit its type", dtype.value)
    return scale, zero


def _constants(
    node: TorchNode, dtype: DType, scale: Array, zero: Array, shape: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """Return scales and zero points as constants."""
    zeros = zero.reshape(shape).astype(dtype.value)
    return node.constant(scale.reshape(shape)), node.constant(zeros)


def _known(node: TorchNode, name: str) -> Array:
    """Return numbers that must be known: of a constant tensor, or one that the program states.

    Raises:
        UnsupportedModelError: the model computes them from its inputs.
    """
    value = node.arguments.get(name)
    if not isinstance(value, Tensor):
        number = node.number(name)
        return np.array(number, np.int64 if isinstance(number, int) else np.float64)
    if value.data is None:
        raise node.unsupported(
            f"the model computes its '{name}' from its inputs",
            "constant scales and zero points, as calibration writes them",
            "quantise the model statically: prepare_pt2e and convert_pt2e, not is_dynamic=True",
        )
    return value.data


def _clamped(node: TorchNode, x: Tensor, scaling: Scaling, limits: tuple[int, int]) -> Tensor:
    """Return reals between those that a range of integers stands for."""
    scale, zero = scaling.scale.data, scaling.zero_point
    assert scale is not None and zero is not None and zero.data is not None, "both are known"
    if scaling.block:
        raise node.unsupported(
            "it uses part of the range of its type, with a scale for each group along an axis",
            "the whole range, or one scale for each index of an axis",
            "quantise per channel",
        )
    shape = (-1, *(1,) * (len(x.shape) - scaling.axis - 1)) if scale.ndim else ()
    for operator, end in zip(("Max", "Min"), limits, strict=True):
        bound = (end - zero.data.astype(np.float32)) * scale
        x = node.onnx(operator, x, node.constant(bound.astype(np.float32).reshape(shape)))
    return x


_PER_TENSOR = ("input", "scale", "zero_point", *_RANGE, "dtype", "out_dtype")
_PER_CHANNEL = ("input", "scales", "zero_points", "axis", *_RANGE, "dtype", "out_dtype")

_AFFINE = ("input", "block_size", "scale", "zero_point", *_RANGE, "input_dtype", "output_dtype")

_OF_TORCHAO = (
    TorchReader("torchao.quantize_affine.default", quantize, _AFFINE),
    TorchReader("torchao.dequantize_affine.default", dequantize, _AFFINE),
)

_OF_PYTORCH = tuple(
    TorchReader(f"quantized_decomposed.{name}_per_{what}.{overload}", read, arguments)
    for name, read in (("quantize", quantize), ("dequantize", dequantize))
    for what, overload, arguments in (
        ("tensor", "default", _PER_TENSOR),
        ("tensor", "tensor", _PER_TENSOR),
        ("tensor", "tensor2", _PER_TENSOR),
        ("channel", "default", _PER_CHANNEL),
    )
)

TORCH_READERS = (*_OF_PYTORCH, *_OF_TORCHAO)
