"""Read ONNX's conversions of type."""

from __future__ import annotations

from microtir.dtype import DType
from microtir.errors import ExportProblem
from microtir.graph.ir import Tensor
from microtir.operators.common import onnx_few_bits, onnx_quantized, onnx_types
from microtir.operators.common.onnx_arithmetic import add, sub
from microtir.operators.common.onnx_operands import MICROSOFT, OnnxNode, OnnxReader
from microtir.operators.division.definition import FloorMod

_INTEGERS = {
    **{number: onnx_types.ONNX_TYPES[number] for number in (2, 3, 4, 5)},
    **{number: few.held for number, few in onnx_few_bits.FEW_BITS.items()},
}
"""Integer types that values can be quantised to, by ONNX's number of the type."""

_STRING = 8  # ONNX's number of the type


def cast(node: OnnxNode) -> Tensor:
    """Read Cast."""
    number, x = node.integer("to"), node.input(0)
    if node.names(x) and number == _STRING:
        return x
    if node.names(x):
        raise node.unsupported(
            "it converts strings to numbers", "a model that computes with numbers",
            "train with numbers as classes and categories", ExportProblem.STRINGS,
        )  # fmt: skip
    if number in onnx_few_bits.FEW_BITS:
        return _as_few_bits(node, onnx_few_bits.FEW_BITS[number])
    return _as(node, onnx_types.onnx_type(node, number))


def _as_few_bits(node: OnnxNode, few: onnx_few_bits.FewBits) -> Tensor:
    """Return integers of few bits in 8: the low bits, of floats those of their whole part."""
    value, low = onnx_types.cast(node, node.input(0), DType.INT32), few.limits[0]
    rest = node.emit(FloorMod(), sub(node, value, low), node.scalar_like(few.count, value))
    return onnx_types.cast(node, add(node, rest, low), few.held)


def cast_like(node: OnnxNode) -> Tensor:
    """Read CastLike."""
    few = node.few_bits.get(1)
    return _as(node, node.input(1).dtype) if few is None else _as_few_bits(node, few)


def _as(node: OnnxNode, dtype: DType) -> Tensor:
    return onnx_types.cast(node, node.input(0), dtype)


def quantize_linear(node: OnnxNode) -> Tensor:
    """Read QuantizeLinear; the type is that of the zero point, or an attribute, or uint8."""
    zero_point, number = node.optional(2), node.integer("output_dtype", 0)
    dtype = DType.UINT8 if zero_point is None else zero_point.dtype
    if number:
        if number not in _INTEGERS:
            raise node.unsupported(
                f"it quantises to type {number}",
                ", ".join(dict.fromkeys(known.value for known in _INTEGERS.values())),
                "quantise to int8 or uint8",
            )
        dtype = _INTEGERS[number]
    few = onnx_few_bits.FEW_BITS.get(number, node.few_bits.get(2))
    limits = None if few is None else few.limits
    return onnx_quantized.quantise(
        node, node.input(0), onnx_quantized.scaling_of(node), dtype, limits
    )


def dequantize_linear(node: OnnxNode) -> Tensor:
    """Read DequantizeLinear."""
    return onnx_quantized.dequantise(node, node.input(0), onnx_quantized.scaling_of(node))


def dynamic_quantize_linear(node: OnnxNode) -> tuple[Tensor, ...]:
    """Read DynamicQuantizeLinear: uint8 whose scale and zero point follow from the values."""
    return onnx_quantized.dynamically_quantised(node, node.input(0))


_LINEAR = ("axis", "block_size", "output_dtype", "precision", "saturate")

ONNX_READERS = (
    *(
        OnnxReader(name, read, (2, 3), _LINEAR, domain=domain)
        for domain in ("", MICROSOFT)
        for name, read in (
            ("QuantizeLinear", quantize_linear),
            ("DequantizeLinear", dequantize_linear),
        )
    ),
    OnnxReader("DynamicQuantizeLinear", dynamic_quantize_linear, outputs=3),
    OnnxReader("Cast", cast, attributes=("round_mode", "saturate", "to")),
    OnnxReader("CastLike", cast_like, (2, 2), ("round_mode", "saturate")),
)
