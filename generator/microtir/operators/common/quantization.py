"""State which tensors of an operator must be quantised, and how."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from microtir.graph.ir import Node, Quantization, Tensor
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


def _equal(node: Node) -> Iterator[Problem]:
    """Check that nothing is rescaled: all tensors have one quantisation, or none."""
    first = node.inputs[0]
    if first.dtype.bytes >= 4:
        return  # wide integers are counts and indices, whatever scales a converter left there
    for tensor in (*node.inputs[1:], *node.outputs):
        if tensor.type.quantization != first.type.quantization:
            yield Problem(
                "its quantisation differs from that of the first input",
                f"{_text(first.type.quantization)}, not {_text(tensor.type.quantization)}",
                tensor,
            )


def _equal_and_own(node: Node) -> Iterator[Problem]:
    yield from _own(node)
    yield from _equal(node)


def _unused(_node: Node) -> Iterator[Problem]:
    yield from ()


def _text(quant: Quantization | None) -> str:
    if quant is None:
        return "no quantisation"
    if quant.is_per_channel:
        return f"{len(quant.scales)} scales along axis {quant.axis}"
    return f"scale {quant.scale:.9g} and zero point {quant.zero_point}"


def _dequantized(node: Node) -> Iterator[Problem]:
    source = node.inputs[0]
    if source.type.quantization is None:
        yield Problem("it is not quantised", "a quantised tensor", source)


@dataclass(frozen=True, slots=True, eq=False)
class QuantizationRule:
    """What is asked of the quantisation of integer tensors: as a check, and in words.

    `weight_axis` is that of the output channels in int8 weights, if the operator takes some.
    """

    check: Rule
    words: str
    weight_axis: int | None = None


UNUSED = QuantizationRule(_unused, "not used")
OWN = QuantizationRule(_own, "each tensor its own")
EQUAL = QuantizationRule(_equal, "equal for inputs and outputs")
EQUAL_AND_OWN = QuantizationRule(_equal_and_own, EQUAL.words)
"""As EQUAL, and none may be without."""

DEQUANTIZED = QuantizationRule(_dequantized, OWN.words)
"""The input is quantised, per tensor or per channel."""


def weights(axis: int) -> QuantizationRule:
    """Take activations per tensor; symmetric weights with one scale or one per output channel."""

    def check(node: Node) -> Iterator[Problem]:
        for tensor in (node.inputs[0], *node.outputs):
            yield from _per_tensor(tensor)
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

    words = "activations their own; weights per tensor or channel, zero point 0"
    return QuantizationRule(check, words, axis)


def fixed(scale: Fraction, zero_point: int) -> QuantizationRule:
    """Fix the quantisation of an int8 output: the range of the result decides it."""
    expected = Quantization((float(scale),), (zero_point,))

    def check(node: Node) -> Iterator[Problem]:
        yield from _own(node)
        quant = node.output.type.quantization
        if node.output.dtype.is_int and quant != expected:
            yield Problem(f"it has {_text(quant)}", _text(expected), node.output)

    return QuantizationRule(check, f"input its own; output scale {scale}, zero point {zero_point}")
