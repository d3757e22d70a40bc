"""What the compiler takes: types and quantisation of every graph operator, as a table.

The frontends check each node against this table, the command line prints it, and the docs quote
it: nothing else in a frontend decides about types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from microtir.errors import MicrotirError, UnsupportedModelError
from microtir.frontend.quantization_rules import (
    Equal,
    Fixed,
    Moved,
    Own,
    QuantizationRule,
    Unused,
    Weights,
)
from microtir.graph import ops
from microtir.graph.ir import Quantization, Tensor
from microtir.tir.dtype import DType

_F32, _I8, _U8, _I16, _I32 = DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT16, DType.INT32
_MOVABLE = (_F32, _I8, _U8, _I16, _I32, DType.INT64, DType.BOOL)


@dataclass(frozen=True, slots=True)
class Signature:
    """One legal combination of types; the last input type stands for all further inputs."""

    inputs: tuple[DType, ...]
    output: DType

    def matches(self, inputs: tuple[DType, ...], outputs: tuple[DType, ...]) -> bool:
        last = len(self.inputs) - 1
        expected = tuple(self.inputs[min(i, last)] for i in range(len(inputs)))
        return inputs == expected and all(dtype is self.output for dtype in outputs)

    def __str__(self) -> str:
        return f"{', '.join(dtype.value for dtype in self.inputs)} -> {self.output.value}"


@dataclass(frozen=True, slots=True)
class OperatorSupport:
    """One row of the table.

    Attributes:
        signatures: legal types of data inputs and output.
        quantization: what the quantisation of integer tensors must be.
        limits: in words, what else is asked for.
    """

    signatures: tuple[Signature, ...]
    quantization: QuantizationRule
    limits: str = ""

    @property
    def types(self) -> str:
        """The signatures in words, those that differ only in one type drawn together."""
        if any(len(signature.inputs) > 1 for signature in self.signatures):
            return "; ".join(map(str, self.signatures))
        sources: dict[DType, tuple[str, ...]] = {}
        for signature in self.signatures:
            known = sources.get(signature.output, ())
            sources[signature.output] = (*known, signature.inputs[0].value)
        if all(names == (output.value,) for output, names in sources.items()):
            return "; ".join(output.value for output in sources)
        results: dict[tuple[str, ...], list[str]] = {}
        for output, names in sources.items():
            results.setdefault(names, []).append(output.value)
        return "; ".join(f"{', '.join(a)} -> {', '.join(b)}" for a, b in results.items())


def _same(*dtypes: DType) -> tuple[Signature, ...]:
    return tuple(Signature((dtype,), dtype) for dtype in dtypes)


_WEIGHTED = (
    Signature((_I8, _I8, _I32), _I8),
    Signature((_F32, _F32, _F32), _F32),
    Signature((_F32, _I8, _F32), _F32),
)
_ACTIVATIONS = "fused activation NONE, RELU, RELU6 or RELU_N1_TO_1"
_MOVE = OperatorSupport(_same(*_MOVABLE), Moved())
_COMPUTE = OperatorSupport(_same(_F32, _I8), Own())


def _weighted(limits: str, weight_axis: int = 0) -> OperatorSupport:
    rule = Weights(weight_axis)
    return OperatorSupport(_WEIGHTED, rule, f"constant weights; {limits}{_ACTIVATIONS}")


def _equal(limits: str) -> OperatorSupport:
    return OperatorSupport(_same(_F32, _I8), Equal(), limits)


def _moved(limits: str) -> OperatorSupport:
    return OperatorSupport(_same(*_MOVABLE), Moved(), limits)


def _fixed(scale: float, zero_point: int, limits: str = "") -> OperatorSupport:
    return OperatorSupport(_same(_F32, _I8), Fixed(Quantization((scale,), (zero_point,))), limits)


OPERATOR_SUPPORT: Mapping[type[ops.Operator], OperatorSupport] = MappingProxyType(
    {
        ops.Conv2D: _weighted("no groups; "),
        ops.DepthwiseConv2D: _weighted("", weight_axis=3),
        ops.FullyConnected: _weighted(""),
        ops.AveragePool2D: _equal(_ACTIVATIONS),
        ops.MaxPool2D: _equal(_ACTIVATIONS),
        ops.Mean: OperatorSupport(_same(_F32, _I8), Own(), "constant axes"),
        ops.Add: OperatorSupport(_same(_F32, _I8), Own(), _ACTIVATIONS),
        ops.Sub: OperatorSupport(_same(_F32, _I8), Own(), _ACTIVATIONS),
        ops.Mul: OperatorSupport(_same(_F32, _I8), Own(), _ACTIVATIONS),
        ops.Minimum: _equal(""),
        ops.Maximum: _equal(""),
        ops.Relu: _COMPUTE,
        ops.LeakyRelu: _COMPUTE,
        ops.HardSwish: _COMPUTE,
        ops.Logistic: _fixed(1 / 256, -128),
        ops.Tanh: _fixed(1 / 128, 0),
        ops.Softmax: _fixed(1 / 256, -128, "over the last axis"),
        ops.LogSoftmax: _fixed(16 / 256, 127, "over the last axis"),
        ops.Pad: _moved("constant paddings and value"),
        ops.Concatenation: _moved("no fused activation"),
        ops.Reshape: _MOVE,
        ops.Transpose: _moved("constant permutation"),
        ops.Split: _moved("equal parts, constant axis"),
        ops.StridedSlice: _moved("constant indices"),
        ops.ResizeNearestNeighbor: _equal("constant size"),
        ops.ResizeBilinear: _equal("constant size"),
        ops.Quantize: OperatorSupport(
            (
                Signature((_F32,), _I8),
                Signature((_I8,), _I8),
                Signature((_I16,), _I8),
                Signature((_U8,), _I8),
                Signature((_I8,), _U8),
            ),
            Own(),
        ),
        ops.Dequantize: OperatorSupport(
            tuple(Signature((dtype,), _F32) for dtype in (_I8, _U8, _I16)), Own()
        ),
        ops.CastTo: OperatorSupport(
            tuple(Signature((a,), b) for a in _MOVABLE for b in _MOVABLE), Unused()
        ),
    }
)
"""Every operator of the graph, in the order of the docs."""


def check_types(
    op: ops.Operator, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], where: str
) -> Iterator[MicrotirError]:
    """All problems of a node with types and quantisation; none if the compiler takes it."""
    support = OPERATOR_SUPPORT[type(op)]
    given = tuple(t.dtype for t in inputs), tuple(t.dtype for t in outputs)
    if not any(signature.matches(*given) for signature in support.signatures):
        names = [", ".join(dtype.value for dtype in dict.fromkeys(side)) for side in given]
        yield UnsupportedModelError(
            f"its types are {names[0]} -> {names[1]}",
            where=where,
            legal=support.types,
            fix=_advice({*given[0], *given[1]}),
        )
        return
    for problem in support.quantization.problems(inputs, outputs):
        yield UnsupportedModelError(problem.what, where=where, legal=problem.legal, fix=problem.fix)


def _advice(dtypes: set[DType]) -> str:
    if _I16 in dtypes:
        return (
            "quantise activations to 8 bits instead of 16: convert with"
            " TFLITE_BUILTINS_INT8, not with 16x8 quantisation"
        )
    if _U8 in dtypes:
        return (
            "uint8 is the older quantisation: convert again with a converter of TensorFlow 2.3"
            " or later and TFLITE_BUILTINS_INT8"
        )
    return "convert the model as float32, or with full integer quantisation to int8"
