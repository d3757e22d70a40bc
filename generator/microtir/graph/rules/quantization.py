"""Which tensors must be quantised, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from microtir.graph import ops
from microtir.graph.ir import Node, Quantization, Tensor
from microtir.graph.rules.problem import Problem, Rule


def quantization(node: Node) -> Iterator[Problem]:
    """Integer tensors of operators that compute have the quantisation that they need."""
    yield from _RULES[type(node.op)](node)


def _per_tensor(tensor: Tensor) -> Iterator[Problem]:
    if tensor.dtype.is_float:
        return
    quant = tensor.type.quantization
    if quant is None:
        yield Problem("it is not quantised", "a scale and a zero point", tensor)
    elif quant.is_per_channel:
        yield Problem("it is quantised per channel", "one scale and zero point", tensor)


def _own(node: Node) -> Iterator[Problem]:
    """Every integer tensor has its own scale and zero point."""
    for tensor in (*node.inputs, *node.outputs):
        yield from _per_tensor(tensor)


def _any(_node: Node) -> Iterator[Problem]:
    """The operator's own affair."""
    return iter(())


def _equal(node: Node) -> Iterator[Problem]:
    """Nothing is rescaled: all tensors have one quantisation, or none."""
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


def _weights(axis: int) -> Rule:
    """Activations per tensor; symmetric weights with one scale or one per output channel."""

    def check(node: Node) -> Iterator[Problem]:
        for tensor in (node.inputs[0], *node.outputs):
            yield from _per_tensor(tensor)
        weights = node.inputs[1]
        quant = weights.type.quantization
        if weights.dtype.is_float:
            return
        if quant is None:
            yield Problem("it is not quantised", "a scale, or one per channel", weights)
            return
        if quant.axis not in (None, axis):
            yield Problem(f"it is quantised along axis {quant.axis}", f"axis {axis}", weights)
        if any(quant.zero_points):
            yield Problem("it has a zero point that is not 0", "0", weights)

    return check


def _fixed(scale: float, zero_point: int) -> Rule:
    """The range of the result decides the quantisation of an int8 output."""
    expected = Quantization((scale,), (zero_point,))

    def check(node: Node) -> Iterator[Problem]:
        yield from _own(node)
        quant = node.output.type.quantization
        if node.output.dtype.is_int and quant != expected:
            yield Problem(f"it has {_text(quant)}", _text(expected), node.output)

    return check


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


_RULES: Mapping[type[ops.Operator], Callable[[Node], Iterator[Problem]]] = MappingProxyType(
    {
        ops.Conv2D: _weights(0),
        ops.DepthwiseConv2D: _weights(3),
        ops.FullyConnected: _weights(0),
        ops.AveragePool2D: _equal_and_own,
        ops.MaxPool2D: _equal_and_own,
        ops.Mean: _own,
        ops.Add: _own,
        ops.Sub: _own,
        ops.Mul: _own,
        ops.Minimum: _equal,
        ops.Maximum: _equal,
        ops.Relu: _own,
        ops.LeakyRelu: _own,
        ops.HardSwish: _own,
        ops.Logistic: _fixed(1 / 256, -128),
        ops.Tanh: _fixed(1 / 128, 0),
        ops.Softmax: _fixed(1 / 256, -128),
        ops.LogSoftmax: _fixed(16 / 256, 127),
        ops.Pad: _equal,
        ops.Concatenation: _equal,
        ops.Reshape: _equal,
        ops.PlaceColumns: _equal,
        ops.JoinColumns: _equal,
        ops.ReadRows: _equal,
        ops.WriteRows: _equal,
        ops.Transpose: _equal,
        ops.Split: _equal,
        ops.StridedSlice: _equal,
        ops.ResizeNearestNeighbor: _equal,
        ops.ResizeBilinear: _equal,
        ops.Quantize: _own,
        ops.Dequantize: _dequantized,
        ops.CastTo: _unused,
        ops.Custom: _any,
    }
)
