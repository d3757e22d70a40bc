"""Tell which operators have a form in integers, and of which types."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Node, Tensor
from microtir.operators import record_of
from microtir.operators.common.problem import Problem
from microtir.operators.common.quantization import Scales
from microtir.operators.common.types import TypeRule, TypeSignature
from microtir.operators.conditions.definition import Comparison
from microtir.operators.control.definition import PutItem
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.cumulation.definition import Cumsum
from microtir.operators.definition import Trait
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.division.definition import FloorDiv, FloorMod
from microtir.operators.indexing.definition import ScatterNd
from microtir.operators.recurrent.definition import Lstm
from microtir.operators.reduction.definition import ReduceProd
from microtir.quantise.options import Width
from microtir.rewrite.facts import rules

ACTIVATIONS: Mapping[Width, DType] = MappingProxyType(
    {Width.INT8: DType.INT8, Width.WEIGHTS4: DType.INT8, Width.INT16: DType.INT16}
)
"""The types of activations; of floats there is none."""

_WEIGHTS4 = (Conv2D, DepthwiseConv2D, FullyConnected)
"""Operators that tflite-micro has with weights of 4 bits."""

_NOT_REAL = (Cumsum, FloorDiv, FloorMod, ReduceProd, ScatterNd)
"""Operators whose integers stand for their real numbers with some zero points alone, or never.

Those of REDUCE_PROD are rounded behind each factor, and tflite-micro has none.
"""

_CHECKED = (rules.scalar_types, rules.output_shapes, rules.quantization, rules.multipliers)


@dataclass(frozen=True, slots=True)
class IntegerForm:
    """The scalar types of a node in integers, those of its inputs and of its outputs."""

    width: Width
    inputs: tuple[DType, ...]
    outputs: tuple[DType, ...]


def integer_form(node: Node, width: Width) -> IntegerForm | None:
    """Return the types that a float node has in integers; None if it has none of this width.

    Activations of real numbers have the type of the width, constants what the operator asks of
    them; conditions, counts and indices stay as they are.
    """
    activation = ACTIVATIONS.get(width)
    constants = (t.values for t in node.inputs if t.is_constant and _is_real(t))
    is_finite = all(np.isfinite(values).all() for values in constants)
    if activation is None or not is_finite or not _computes_on_scales(node):
        return None
    if activation is DType.INT16 and isinstance(node.op, Comparison):
        return None  # LiteRT compares integers as stored; scales of tflite-micro are undefined
    definition = record_of(node.op).definition
    for signature in definition.types.signatures or ():
        inputs = tuple(_inputs(node, definition.types, signature))
        outputs = tuple(_outputs(node, signature))
        pairs = [*zip(node.inputs, inputs, strict=True), *zip(node.outputs, outputs, strict=True)]
        activations = {activation, DType.INT16} if isinstance(node.op, Lstm) else {activation}
        is_first = inputs[0] is activation or node.inputs[0].dtype is not DType.FLOAT32
        if is_first and all(_fits(tensor, dtype, activations) for tensor, dtype in pairs):
            has_few_bits = width is Width.WEIGHTS4 and isinstance(node.op, _WEIGHTS4)
            of_8_bits = Width.INT16 if width is Width.INT16 else Width.INT8
            return IntegerForm(Width.WEIGHTS4 if has_few_bits else of_8_bits, inputs, outputs)
    return None


def problems_of(node: Node) -> Iterator[Problem]:
    """Yield what rules of operators object to in a node of integers, for whose types there is one.

    A later rule relies on earlier ones, so that only the first that objects is asked.
    """
    for rule in _CHECKED:
        problems = tuple(rule(node))
        yield from problems
        if problems:
            return


def scales_of(node: Node) -> Scales:
    """Return how the tensors of a node share quantisations."""
    record = record_of(node.op)
    if isinstance(node.op, PutItem):
        return Scales.ONE
    # What takes integers as they are stored means the same real numbers in one scale alone.
    return Scales.ONE if record.has(Trait.STORED) else record.definition.quantization.scales


def _computes_on_scales(node: Node) -> bool:
    """Return whether a node has real numbers, and integers of it mean some."""
    record = record_of(node.op)
    if record.has(Trait.OPAQUE) or isinstance(node.op, _NOT_REAL):
        return False
    has_reals = any(_is_real(tensor) for tensor in (*node.inputs, *node.outputs))
    return has_reals and scales_of(node) is not Scales.UNUSED


def _is_real(tensor: Tensor) -> bool:
    return tensor.dtype is DType.FLOAT32


def _inputs(node: Node, rule: TypeRule, signature: TypeSignature) -> Iterator[DType]:
    last = len(signature.inputs) - 1
    for number, tensor in enumerate(node.inputs):
        is_index = rule.indices_from is not None and number >= rule.indices_from
        yield tensor.dtype if is_index else signature.inputs[min(number, last)]


def _outputs(node: Node, signature: TypeSignature) -> Iterator[DType]:
    results = (signature.output, *signature.more)
    for number in range(len(node.outputs)):
        yield results[min(number, len(results) - 1)]


def _fits(tensor: Tensor, dtype: DType, activations: Container[DType]) -> bool:
    if not _is_real(tensor):
        return tensor.dtype is dtype
    return dtype.is_int if tensor.is_constant else dtype in activations
