"""Emit ONNX's affine quantisation, as its definition has it: one step after the other.

QuantizeLinear is saturate(round(x / scale) + zero point) in float32, of two nearest integers the
even one, and DequantizeLinear (x - zero point) * scale.  A tensor with one scale whose integers the
graph quantises, too, becomes one operator; scales of channels and of blocks, and wider integers,
become the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from microtir.dtype import DType
from microtir.errors import ExportProblem, ModelFileError
from microtir.graph.ir import Array, Quantization, Tensor, TensorType
from microtir.graph.names import brief
from microtir.operators.common import onnx_arithmetic, onnx_parts, onnx_types
from microtir.operators.common.onnx_operands import MANY, OnnxNode
from microtir.operators.conversion.definition import CastTo, Dequantize, Quantize
from microtir.operators.reduction.definition import ReduceMax, ReduceMin
from microtir.operators.unary.definition import Round

_ONE_OPERATOR = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16)


@dataclass(frozen=True, slots=True)
class Scaling:
    """Scale and zero point of a tensor, as the file gives them.

    Args:
        scale: of the tensor, of each index of `axis`, or of each block along it.
        zero_point: of the same shape, of the type of the integers; None stands for 0.
        axis: as the file gives it, where there are several scales.
        block: elements along the axis that share a scale, where the scales have as many dimensions
            as the tensor; 0 where they have one.
    """

    scale: Tensor
    zero_point: Tensor | None = None
    axis: int = 1
    block: int = 0


def scaling_of(node: OnnxNode) -> Scaling:
    """Return what QuantizeLinear and DequantizeLinear say of their integers."""
    axis, block = node.integer("axis", 1), node.integer("block_size", 0)
    return Scaling(node.input(1), node.optional(2), axis, block)


def quantise(
    node: OnnxNode,
    x: Tensor,
    scaling: Scaling,
    dtype: DType,
    limits: tuple[int, int] | None = None,
    *,
    by_reciprocal: bool = False,
) -> Tensor:
    """Emit QuantizeLinear to integers of a type, or between limits that are closer.

    With `by_reciprocal` a value is multiplied by the reciprocal of the scale, as PT2E does it.
    """
    if dtype.is_float or dtype is DType.BOOL:
        raise node.malformed(f"it quantises to {dtype.value}", "integers")
    _check_scale(node, scaling)
    known = _quantization(scaling)
    if known is not None and dtype in _ONE_OPERATOR and limits is None:
        type_ = TensorType(x.shape, dtype, known)
        op = Quantize(ties_to_even=True, by_reciprocal=by_reciprocal)
        return node.emitter.emit(op, (x,), (type_,))[0]
    scale, zero_point = _spread(node, x, scaling)
    if by_reciprocal:
        inverse = onnx_arithmetic.div(node, 1.0, scale)
        value = node.emit(Round(), onnx_arithmetic.mul(node, x, inverse))
    else:
        value = node.emit(Round(), onnx_arithmetic.div(node, x, scale))
    if zero_point is not None:
        value = onnx_arithmetic.add(node, value, onnx_types.cast(node, zero_point, DType.FLOAT32))
    low, high = limits or (dtype.min, dtype.max)
    return onnx_types.cast(
        node, onnx_arithmetic.most(node, onnx_arithmetic.least(node, value, high), low), dtype
    )


def dequantise(node: OnnxNode, x: Tensor, scaling: Scaling) -> Tensor:
    """Emit DequantizeLinear to float32."""
    _check_scale(node, scaling)
    known = _quantization(scaling)
    if known is not None and x.dtype in _ONE_OPERATOR and x.data is None:
        return node.emit(Dequantize(), _retyped(node, x, known), dtype=DType.FLOAT32)
    if x.data is not None and not scaling.block:
        remembered = _dequantised_constant(node, x, scaling)
        if remembered is not None:
            return remembered
    scale, zero_point = _spread(node, x, scaling)
    value = onnx_types.cast(node, x, DType.FLOAT32)
    if zero_point is not None and x.dtype.bytes < 4:  # int32 has the zero point 0
        value = onnx_arithmetic.sub(node, value, onnx_types.cast(node, zero_point, DType.FLOAT32))
    return onnx_arithmetic.mul(node, value, scale)


def requantised(
    node: OnnxNode,
    inputs: tuple[tuple[int, Scaling], ...],
    read: Callable[[OnnxNode], Tensor],
    output: Scaling | None,
    bias: int = MANY,
) -> Tensor:
    """Emit an operator of floats between integers.

    Args:
        node: of the file.
        inputs: the places of quantised inputs, with their scales.
        read: reads the operator of floats; its inputs are those given.
        output: of the result; None if that stays a float.
        bias: the place of a bias of int32, which has the product of the first two scales.
    """
    operands = tuple(dequantise(node, node.input(at), scaling) for at, scaling in inputs)
    bias_tensor = node.optional(bias)
    if bias_tensor is not None:
        first, second = (
            onnx_parts.reshaped(node, scaling.scale, scaling.scale.type.elements)
            for _, scaling in inputs[:2]
        )
        operands += (
            dequantise(
                node, bias_tensor, Scaling(onnx_arithmetic.mul(node, first, second), axis=-1)
            ),
        )
    result = read(replace(node, inputs=operands))
    if output is None:
        return result
    stored = node.input(inputs[0][0]).dtype
    dtype = stored if output.zero_point is None else output.zero_point.dtype
    return quantise(node, result, output, dtype)


def between_integers(
    read: Callable[[OnnxNode], Tensor], operands: int = 1
) -> Callable[[OnnxNode], Tensor]:
    """Return what reads one of com.microsoft's QLinear operators.

    Each operand is followed by its scale and zero point, and all by those of the output.
    """

    def quantised(node: OnnxNode) -> Tensor:
        places = [3 * number for number in range(operands)]
        inputs = tuple((at, Scaling(*node.inputs_at(at + 1, at + 2))) for at in places)
        output = Scaling(*node.inputs_at(3 * operands, 3 * operands + 1))
        return requantised(node, inputs, read, output)

    return quantised


def _check_scale(node: OnnxNode, scaling: Scaling) -> None:
    """Refuse a known scale that makes every value a NaN."""
    data = scaling.scale.data
    if data is not None and not np.isfinite(data).all():
        raise node.malformed(f"its scale {brief(scaling.scale.name)!r} is not a finite number",
                             "finite numbers above 0")  # fmt: skip


def dynamically_quantised(node: OnnxNode, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Emit DynamicQuantizeLinear: uint8, and the scale and zero point that follow from values."""
    axes = tuple(range(len(x.shape)))
    low = onnx_arithmetic.least(node, node.emit(ReduceMin(axes), x, shape=()), 0.0)
    high = onnx_arithmetic.most(node, node.emit(ReduceMax(axes), x, shape=()), 0.0)
    scale = onnx_arithmetic.div(node, onnx_arithmetic.sub(node, high, low), 255.0)
    # All zeros have a scale of 0, which would divide 0 by 0: by 1 they stay zeros.
    divisor = onnx_arithmetic.choose(node, onnx_arithmetic.equal(node, scale, 0.0), 1.0, scale)
    place = onnx_arithmetic.div(node, onnx_arithmetic.sub(node, 0.0, low), divisor)
    clipped = onnx_arithmetic.most(node, onnx_arithmetic.least(node, place, 255.0), 0.0)
    zero_point = onnx_types.cast(node, node.emit(Round(), clipped), DType.UINT8)
    return quantise(node, x, Scaling(divisor, zero_point), DType.UINT8), scale, zero_point


def _quantization(scaling: Scaling) -> Quantization | None:
    """Return one known scale and zero point of a tensor, if that is what there is."""
    scale, zero_point = scaling.scale.data, scaling.zero_point
    if scale is None or scale.size != 1 or scaling.block or not float(scale.reshape(())) > 0:
        return None
    if zero_point is None:
        return Quantization((float(scale.reshape(())),), (0,))
    if zero_point.data is None or zero_point.data.size != 1:
        return None
    return Quantization((float(scale.reshape(())),), (int(zero_point.data.reshape(())),))


def _retyped(node: OnnxNode, x: Tensor, known: Quantization) -> Tensor:
    """Return integers with what a file says of them where they are read."""
    if x.type.quantization == known:
        return x
    type_ = TensorType(x.shape, x.dtype, known)
    if x.data is not None:
        return replace(node.constant(x.data), type=type_)
    return node.emitter.emit(CastTo(), (x,), (type_,))[0]


def _dequantised_constant(node: OnnxNode, x: Tensor, scaling: Scaling) -> Tensor | None:
    """Return floats that remember what they are multiples of: 8 bits with sign.

    Stored values less their zero point are what kernels multiply.  None for others.
    """
    scale, zero_point, data = scaling.scale.data, scaling.zero_point, x.data
    if scale is None or data is None or x.dtype not in (DType.INT8, DType.UINT8):
        return None
    scales = scale.reshape(-1).astype(np.float32)
    zeros = np.zeros(1, np.int64) if zero_point is None else zero_point.data
    if zeros is None or not (scales > 0).all():
        return None
    axis = None if scales.size == 1 else node.axis(scaling.axis, len(x.shape))
    if axis is not None and scales.size != x.shape[axis]:
        raise _contradicts(node, x, scaling)
    shape = (-1, *(1,) * (0 if axis is None else len(x.shape) - axis - 1))
    shape = shape if axis is not None else ()
    of_each = zeros.astype(np.int64).reshape(shape if zeros.size > 1 else ())
    whole = data.astype(np.int64) - of_each
    if whole.min(initial=0) < DType.INT8.min or whole.max(initial=0) > DType.INT8.max:
        return None
    values = node.constant(np.asarray(whole.astype(np.float32) * scales.reshape(shape)))
    quant = Quantization(tuple(scales.tolist()), (0,) * scales.size, axis)
    return replace(values, type=replace(values.type, quantization=quant))


def _spread(node: OnnxNode, x: Tensor, scaling: Scaling) -> tuple[Tensor, Tensor | None]:
    """Return scale and zero point in shapes that broadcast to the tensor."""
    if scaling.scale.type.elements == 1:
        return scaling.scale, scaling.zero_point
    scale, zero_point = (
        None if t is None else _known(node, t) for t in (scaling.scale, scaling.zero_point)
    )
    assert scale is not None
    axis = node.axis(scaling.axis, len(x.shape))

    def spread(values: Array) -> Tensor:
        if scaling.block:
            part = -(-x.shape[axis] // max(scaling.block, 1))
            if scaling.block < 0 or values.ndim <= axis or values.shape[axis] != part:
                raise _contradicts(node, x, scaling)
            repeats = min(scaling.block, x.shape[axis])
            repeated = np.repeat(values, repeats, axis=axis)
            values = repeated[tuple(slice(0, extent) for extent in x.shape)]
            if values.shape != x.shape:
                raise _contradicts(node, x, scaling)
            return node.constant(values)
        if values.size != x.shape[axis]:
            raise _contradicts(node, x, scaling)
        return node.constant(values.reshape((-1, *(1,) * (len(x.shape) - axis - 1))))

    return spread(scale), None if zero_point is None else spread(zero_point)


def _known(node: OnnxNode, tensor: Tensor) -> Array:
    if tensor.data is None:
        raise node.unsupported(
            "the model computes scales of channels",
            "constants",
            "quantise the model statically",
            ExportProblem.DYNAMIC_QUANTISATION,
        )
    return tensor.data


def _contradicts(node: OnnxNode, x: Tensor, scaling: Scaling) -> ModelFileError:
    return node.malformed(
        f"scales of shape {scaling.scale.shape} for a tensor of {x.shape}, axis {scaling.axis}",
        "one, one of each index of the axis, or one of each block",
    )
