"""State which tensors of an operator must be quantised, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple

from microtir.dtype import DType
from microtir.graph.ir import Node, Quantization, Tensor
from microtir.operators.common import linear, types
from microtir.operators.common.problem import Problem, Rule


def _per_tensor(tensor: Tensor) -> Iterator[Problem]:
    if tensor.dtype.is_float:
        return
    quant = tensor.type.quantization
    if quant is None:
        yield Problem("it is not quantised", "a scale and a zero point", tensor)
    elif quant.is_per_channel:
        yield Problem("it is quantised per channel", "one scale and zero point", tensor)


def _own(node: Node) -> Iterator[Problem]:
    """Check that every integer tensor has its own scale and zero point."""
    for tensor in (*node.inputs, *node.outputs):
        yield from _per_tensor(tensor)


def _symmetric_int16(tensor: Tensor) -> Iterator[Problem]:
    """Find a zero point of an int16 tensor, which tflite-micro does not look at."""
    quant = tensor.type.quantization
    if tensor.dtype is DType.INT16 and quant is not None and any(quant.zero_points):
        yield Problem("it has a zero point that is not 0", "0 for int16", tensor)


def _own_symmetric_int16(node: Node) -> Iterator[Problem]:
    for tensor in (*node.inputs, *node.outputs):
        yield from _per_tensor(tensor)
        yield from _symmetric_int16(tensor)


def _own_if_narrow(node: Node) -> Iterator[Problem]:
    """Check that every int8 and int16 tensor has its own scale and zero point."""
    for tensor in (*node.inputs, *node.outputs):
        if tensor.dtype in types.QUANTISED:
            yield from _per_tensor(tensor)


def _own_if_narrow_symmetric_int16(node: Node) -> Iterator[Problem]:
    yield from _own_if_narrow(node)
    for tensor in (*node.inputs, *node.outputs):
        yield from _symmetric_int16(tensor)


def _quantized_or_not_int16(node: Node) -> Iterator[Problem]:
    """Check what is quantised: int8 is, int16 may be, int32 is not."""
    tensors = (*node.inputs, *node.outputs)
    is_quantized = any(tensor.type.quantization is not None for tensor in tensors)
    dtype = tensors[0].dtype
    if dtype is DType.INT8 or (dtype is DType.INT16 and is_quantized):
        yield from _own_symmetric_int16(node)


def _equal_inputs_if_narrow(node: Node) -> Iterator[Problem]:
    yield from _own_if_narrow(node)
    if node.inputs[0].dtype in types.QUANTISED:
        yield from _equal(Node(node.op, node.inputs, (), node.name, node.source))


def _equal(node: Node) -> Iterator[Problem]:
    """Check that nothing is rescaled: data have one quantisation, or none; indices are no data."""
    first = node.inputs[0]
    if first.dtype.bytes >= 4:
        return  # wide integers are counts and indices, whatever scales a converter left there
    for tensor in (*node.inputs[1:], *node.outputs):
        same = tensor.type.quantization == first.type.quantization
        if tensor.dtype is first.dtype and not same:
            yield Problem(
                "its quantisation differs from that of the first input",
                f"{quantization_text(first.type.quantization)},"
                f" not {quantization_text(tensor.type.quantization)}",
                tensor,
            )


def _equal_and_own(node: Node) -> Iterator[Problem]:
    yield from _own(node)
    yield from _equal(node)


def _unused(_node: Node) -> Iterator[Problem]:
    yield from ()


def quantization_text(quant: Quantization | None) -> str:
    """Return a quantisation as diagnostics name it."""
    if quant is None:
        return "no quantisation"
    if quant.is_per_channel:
        return f"{len(quant.scales)} scales along axis {quant.axis}"
    return f"scale {quant.scale:.9g} and zero point {quant.zero_point}"


def _dequantized(node: Node) -> Iterator[Problem]:
    source = node.inputs[0]
    if source.dtype.is_int and source.type.quantization is None:
        yield Problem("it is not quantised", "a quantised tensor", source)


def _symmetric(node: Node) -> Iterator[Problem]:
    source = node.inputs[0]
    yield from _per_tensor(source)
    quant = source.type.quantization
    if quant is not None and any(quant.zero_points):
        yield Problem("it has a zero point that is not 0", "0", source)


class Scales(Enum):
    """Ways in which tensors of an operator share quantisations."""

    UNUSED = "nothing: nobody looks at them"
    OWN = "each tensor has its own"
    ONE_OF_INPUTS = "all inputs have one"
    ONE = "all inputs and outputs have one"


@dataclass(frozen=True, slots=True, eq=False)
class QuantizationRule:
    """The rule for the quantisation of integer tensors: as a check, and in words.

    `weight_axis` is that of the output channels in int8 weights, if the operator takes some.
    `scales` and `fixed` say the same for who chooses quantisations: how tensors share them, and
    what outputs have by the types of the first input and of the output.
    """

    check: Rule
    words: str
    weight_axis: int | None = None
    scales: Scales = Scales.OWN
    fixed: Mapping[tuple[DType, DType], Quantization] = field(
        default_factory=lambda: MappingProxyType({})
    )


UNUSED = QuantizationRule(_unused, "not used", scales=Scales.UNUSED)
OWN = QuantizationRule(_own, "each tensor its own")
OWN_SYMMETRIC_INT16 = QuantizationRule(
    _own_symmetric_int16, "each tensor its own; int16 with zero point 0"
)


OWN_IF_NARROW = QuantizationRule(_own_if_narrow, f"{OWN.words}; not used in int32 and int64")
OWN_IF_NARROW_SYMMETRIC_INT16 = QuantizationRule(
    _own_if_narrow_symmetric_int16, f"{OWN_SYMMETRIC_INT16.words}; not used in int32 and int64"
)
QUANTIZED_OR_NOT_INT16 = QuantizationRule(
    _quantized_or_not_int16, "each tensor its own; int16 with zero point 0, or none; int32 unused"
)
EQUAL_INPUTS_IF_NARROW = QuantizationRule(
    _equal_inputs_if_narrow,
    f"{OWN.words}, one for all inputs; not used in int32 and int64",
    scales=Scales.ONE_OF_INPUTS,
)
EQUAL = QuantizationRule(_equal, "equal for inputs and outputs", scales=Scales.ONE)
EQUAL_AND_OWN = QuantizationRule(_equal_and_own, EQUAL.words, scales=Scales.ONE)
"""The rule EQUAL, where every tensor also needs a quantisation."""


def _symmetric_weights(node: Node) -> Iterator[Problem]:
    yield from _own_if_narrow_symmetric_int16(node)
    for tensor in node.inputs:
        quant = tensor.type.quantization
        if tensor.is_constant and quant is not None and any(quant.zero_points):
            yield Problem("it has a zero point that is not 0", "0 for constants", tensor)


SYMMETRIC_WEIGHTS = QuantizationRule(
    _symmetric_weights, "each tensor its own; constants and int16 with zero point 0"
)

DEQUANTIZED = QuantizationRule(_dequantized, OWN.words)
"""The input is quantised, per tensor or per channel."""

SYMMETRIC = QuantizationRule(_symmetric, "one scale, zero point 0")
"""The first input is quantised, with zero point 0."""


def weights(axis: int) -> QuantizationRule:
    """Take activations per tensor; symmetric weights with one scale or one per output channel."""

    def check(node: Node) -> Iterator[Problem]:
        for tensor in (node.inputs[0], *node.outputs):
            yield from _per_tensor(tensor)
            if not linear.rescales_in_float(node):
                yield from _symmetric_int16(tensor)
        factors = node.inputs[1]
        quant = factors.type.quantization
        if factors.dtype.is_float:
            return
        if quant is None:
            yield Problem("it is not quantised", "a scale, or one per channel", factors)
            return
        if quant.axis not in (None, axis):
            yield Problem(f"it is quantised along axis {quant.axis}", f"axis {axis}", factors)
        if any(quant.zero_points):
            yield Problem("it has a zero point that is not 0", "0", factors)

    words = "activations their own, int16 with zero point 0;"
    words += " weights per tensor or channel, zero point 0"
    return QuantizationRule(check, words, axis)


def unless_in_float(rule: QuantizationRule) -> QuantizationRule:
    """Take any scales where an operator rescales in float32, else what a rule asks for.

    Its words are those of the rule: files of TFLite have no other.
    """

    def check(node: Node) -> Iterator[Problem]:
        yield from (_own if linear.rescales_in_float(node) else rule.check)(node)

    return replace(rule, check=check)


OF_FIXED_SCALE = 1e-3
"""Tolerance for the scale of a fixed output, as a part of it.

tflite-micro allows as much for SOFTMAX, and computes with the exact one: some converters divide by
65535 where others divide by 65536.
"""


def is_near(quant: Quantization, fixed_one: Quantization) -> bool:
    """Return whether a quantisation has a fixed zero point, and nearly a fixed scale."""
    if quant.is_per_channel or quant.zero_points != fixed_one.zero_points:
        return False
    return abs(quant.scale - fixed_one.scale) <= OF_FIXED_SCALE * fixed_one.scale


class FixedOutput(NamedTuple):
    """The quantisation that an output has because the range of the result decides it."""

    source: DType
    output: DType
    scale: Fraction
    zero_point: int


def fixed(*outputs: FixedOutput) -> QuantizationRule:
    """Fix the quantisation of integer outputs; int16 inputs are symmetric."""
    expected = {
        (source, output): Quantization((float(scale),), (zero_point,))
        for source, output, scale, zero_point in outputs
    }

    def check(node: Node) -> Iterator[Problem]:
        yield from _own(node)
        yield from _symmetric_int16(node.inputs[0])
        quant = node.output.type.quantization
        legal = expected.get((node.inputs[0].dtype, node.output.dtype))
        if legal is not None and (quant is None or not is_near(quant, legal)):
            yield Problem(
                f"it has {quantization_text(quant)}", quantization_text(legal), node.output
            )

    words = "; ".join(
        f"output {output.value} scale {scale}, zero point {zero_point}"
        for _, output, scale, zero_point in outputs
    )
    return QuantizationRule(check, f"input its own; {words}", fixed=MappingProxyType(expected))
