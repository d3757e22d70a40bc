"""What the compiler takes: types and quantisation of every graph operator, as a table.

The frontends check each node against this table, the command line prints it, and the docs quote
it: nothing else in a frontend decides about types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend.tflite_file import brief
from microtir.graph import ops
from microtir.graph.ir import Node
from microtir.graph.rules.multipliers import multipliers
from microtir.graph.rules.problem import Problem
from microtir.graph.rules.quantization import quantization
from microtir.graph.rules.shapes import output_shapes
from microtir.tir.dtype import DType

_EXPORT = "export the model again"
_REQUANTIZE = "convert the model again with full integer quantisation"

_F32, _I8, _U8, _I16, _I32 = DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT16, DType.INT32
_MOVABLE = (_F32, _I8, _U8, _I16, _I32, DType.INT64, DType.BOOL)


class QuantizationRule(Enum):
    """What `graph.rules` asks of the quantisation of integer tensors, in words."""

    UNUSED = "not used"
    OWN = "each tensor its own"
    EQUAL = "equal for inputs and outputs"
    WEIGHTS = "activations their own; weights per tensor or channel, zero point 0"
    UNIT = "input its own; output scale 1/256, zero point -128"
    SIGNED_UNIT = "input its own; output scale 1/128, zero point 0"
    LOGARITHM = "input its own; output scale 1/16, zero point 127"


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
_Rule = QuantizationRule
_ACTIVATIONS = "fused activation NONE, RELU, RELU6 or RELU_N1_TO_1"


def _weighted(limits: str = "") -> OperatorSupport:
    return OperatorSupport(_WEIGHTED, _Rule.WEIGHTS, f"constant weights; {limits}{_ACTIVATIONS}")


def _computed(rule: QuantizationRule, limits: str = "") -> OperatorSupport:
    return OperatorSupport(_same(_F32, _I8), rule, limits)


def _moved(limits: str = "") -> OperatorSupport:
    return OperatorSupport(_same(*_MOVABLE), _Rule.EQUAL, limits)


OPERATOR_SUPPORT: Mapping[type[ops.Operator], OperatorSupport] = MappingProxyType(
    {
        ops.Conv2D: _weighted("no groups; "),
        ops.DepthwiseConv2D: _weighted(),
        ops.FullyConnected: _weighted(),
        ops.AveragePool2D: _computed(_Rule.EQUAL, _ACTIVATIONS),
        ops.MaxPool2D: _computed(_Rule.EQUAL, _ACTIVATIONS),
        ops.Mean: _computed(_Rule.OWN, "constant axes"),
        ops.Add: _computed(_Rule.OWN, _ACTIVATIONS),
        ops.Sub: _computed(_Rule.OWN, _ACTIVATIONS),
        ops.Mul: _computed(_Rule.OWN, _ACTIVATIONS),
        ops.Minimum: _computed(_Rule.EQUAL),
        ops.Maximum: _computed(_Rule.EQUAL),
        ops.Relu: _computed(_Rule.OWN),
        ops.LeakyRelu: _computed(_Rule.OWN),
        ops.HardSwish: _computed(_Rule.OWN),
        ops.Logistic: _computed(_Rule.UNIT),
        ops.Tanh: _computed(_Rule.SIGNED_UNIT),
        ops.Softmax: _computed(_Rule.UNIT, "over the last axis"),
        ops.LogSoftmax: _computed(_Rule.LOGARITHM, "over the last axis"),
        ops.Pad: _moved("constant paddings and value"),
        ops.Concatenation: _moved("no fused activation"),
        ops.Reshape: _moved(),
        ops.Transpose: _moved("constant permutation"),
        ops.Split: _moved("equal parts, constant axis"),
        ops.StridedSlice: _moved("constant indices"),
        ops.ResizeNearestNeighbor: _computed(_Rule.EQUAL, "constant size"),
        ops.ResizeBilinear: _computed(_Rule.EQUAL, "constant size"),
        ops.Quantize: OperatorSupport(
            (
                Signature((_F32,), _I8),
                Signature((_I8,), _I8),
                Signature((_I16,), _I8),
                Signature((_U8,), _I8),
                Signature((_I8,), _U8),
            ),
            _Rule.OWN,
        ),
        ops.Dequantize: OperatorSupport(
            tuple(Signature((dtype,), _F32) for dtype in (_I8, _U8, _I16)), _Rule.OWN
        ),
        ops.CastTo: OperatorSupport(
            tuple(Signature((a,), b) for a in _MOVABLE for b in _MOVABLE), _Rule.UNUSED
        ),
    }
)
"""Every operator of the graph, in the order of the docs."""


def node_problems(node: Node, where: str) -> Iterator[MicrotirError]:
    """All problems that keep the compiler from taking a node; none if it takes it.

    Shapes that contradict each other are damage, and nothing more is said about the node.
    """
    for problem in output_shapes(node):
        yield ModelFileError(
            problem.what, where=_place(where, problem), legal=problem.legal, fix=_EXPORT
        )
        return
    support = OPERATOR_SUPPORT[type(node.op)]
    given = tuple(t.dtype for t in node.inputs), tuple(t.dtype for t in node.outputs)
    if not any(signature.matches(*given) for signature in support.signatures):
        names = [", ".join(dtype.value for dtype in dict.fromkeys(side)) for side in given]
        yield UnsupportedModelError(
            f"its types are {names[0]} -> {names[1]}",
            where=where,
            legal=support.types,
            fix=_advice({*given[0], *given[1]}),
        )
        return
    # The fixed-point form of scales can be asked for only where the scales are as they must be.
    for problem in tuple(quantization(node)) or multipliers(node):
        yield UnsupportedModelError(
            problem.what, where=_place(where, problem), legal=problem.legal, fix=_REQUANTIZE
        )


def _place(where: str, problem: Problem) -> str:
    if problem.tensor is None:
        return where
    return f"{where}: tensor {brief(problem.tensor.name)!r}"


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
