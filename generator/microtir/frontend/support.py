"""Problems that keep the compiler from taking a node of a model file, with advice for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from microtir.dtype import DType
from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.graph.ir import Node
from microtir.graph.names import brief
from microtir.operators import record_of
from microtir.operators.common.problem import Problem
from microtir.rewrite.facts.rules import multipliers, output_shapes, quantization

_EXPORT = "export the model again"


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice on a node of a model file, in the words of those who write files of one format.

    Args:
        scales: that an operator cannot compute with.
        sixteen_bits: which it does not take.
        unsigned_bytes: which it does not take.
        types: others.
    """

    scales: str
    sixteen_bits: str
    unsigned_bytes: str
    types: str

    def of_types(self, dtypes: set[DType]) -> str:
        """Return what to do where an operator does not take some of these types."""
        if DType.INT16 in dtypes:
            return self.sixteen_bits
        return self.unsigned_bytes if DType.UINT8 in dtypes else self.types


TFLITE_ADVICE = Advice(
    scales="convert the model again with full integer quantisation",
    sixteen_bits=(
        "quantise activations to 8 bits instead of 16: convert with TFLITE_BUILTINS_INT8, not with"
        " 16x8 quantisation"
    ),
    unsigned_bytes=(
        "uint8 is the older quantisation: convert again with a converter of TensorFlow 2.3"
        " or later and TFLITE_BUILTINS_INT8"
    ),
    types="convert the model as float32, or with full integer quantisation to int8",
)

READABLE = (
    DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.UINT32, DType.INT64,
    DType.UINT64, DType.BOOL,
)  # fmt: skip
"""Scalar types of tensors that are read from model files."""


def node_problems(
    node: Node, where: str, advice: Advice = TFLITE_ADVICE
) -> Iterator[MicrotirError]:
    """Yield all problems that keep the compiler from taking a node; none if it takes it.

    Shapes that contradict each other are damage, and nothing more is said about the node.
    """
    for problem in output_shapes(node):
        yield ModelFileError(
            problem.what, where=_place(where, problem), legal=problem.legal, fix=_EXPORT
        )
        return
    types = record_of(node.op).definition.types
    dtypes = tuple(t.dtype for t in node.inputs), tuple(t.dtype for t in node.outputs)
    if not types.accepts(*dtypes):
        names = [", ".join(dtype.value for dtype in dict.fromkeys(side)) for side in dtypes]
        yield UnsupportedModelError(
            f"its types (inputs -> outputs) are {names[0]} -> {names[1]}",
            where=where,
            legal=types.restricted(READABLE).words,
            fix=advice.of_types({*dtypes[0], *dtypes[1]}),
        )
        return
    # The fixed-point form of scales can be asked for only where the scales are as they must be.
    for problem in tuple(quantization(node)) or multipliers(node):
        yield UnsupportedModelError(
            problem.what, where=_place(where, problem), legal=problem.legal, fix=advice.scales
        )


def _place(where: str, problem: Problem) -> str:
    if problem.tensor is None:
        return where
    return f"{where}: tensor {brief(problem.tensor.name)!r}"
