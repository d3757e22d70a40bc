"""The rules about single nodes: each asks the definition of the node's operator."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from microtir.errors import GraphError
from microtir.graph.ir import Node
from microtir.operators import record_of
from microtir.operators.common.multiplier import MAX_SHIFT
from microtir.operators.common.problem import Problem
from microtir.operators.common.shapes import Shape


def arity(node: Node) -> Iterator[Problem]:
    """Find a number of inputs or outputs that the operator does not take."""
    definition = record_of(node.op).definition
    low, high = definition.inputs
    if not low <= len(node.inputs) <= high:
        legal = str(low) if low == high else f"{low} to {high}"
        yield Problem(f"{node.op.name} has {len(node.inputs)} inputs", legal)
    if not 1 <= len(node.outputs) <= definition.outputs:
        yield Problem(f"{node.op.name} has {len(node.outputs)} outputs", "1")


def scalar_types(node: Node) -> Iterator[Problem]:
    """Find scalar types of inputs and outputs that the operator does not take."""
    rule = record_of(node.op).definition.types
    inputs, outputs = (tuple(t.dtype for t in side) for side in (node.inputs, node.outputs))
    if not rule.accepts(inputs, outputs):
        names = [", ".join(dtype.value for dtype in side) for side in (inputs, outputs)]
        yield Problem(f"its types (inputs -> outputs) are {names[0]} -> {names[1]}", rule.words)


def output_shapes(node: Node) -> Iterator[Problem]:
    """Find outputs whose shapes do not follow from the inputs."""
    try:
        expected = record_of(node.op).definition.shapes(node)
    except GraphError as error:
        yield Problem(error.what, error.legal)
        return
    for tensor, shape in zip(node.outputs, expected, strict=True):
        if tensor.shape != shape:
            yield Problem(f"its shape is {tensor.shape}", f"{shape}", tensor)


def inferred_shapes(node: Node) -> tuple[Shape, ...] | None:
    """Return the shapes that follow from the inputs; None if these contradict the operator.

    An operator that can give several takes what its outputs have, if that is one of them.
    """
    try:
        return record_of(node.op).definition.shapes(node)
    except GraphError:
        return None


def quantization(node: Node) -> Iterator[Problem]:
    """Find integer tensors that are not quantised as the operator needs it."""
    yield from record_of(node.op).definition.quantization.check(node)


def multipliers(node: Node) -> Iterator[Problem]:
    """Find factors of an int8 operator that have no fixed-point form.

    The kernels assume that shifts fit an int32 and that some factors are below one.  Scales of
    trained models are far from these limits; where they are not, tflite-micro aborts.
    """
    rule = record_of(node.op).definition.multipliers
    if rule is None or node.inputs[0].dtype.is_float:
        return
    try:
        with np.errstate(over="raise"):
            problems = tuple(rule(node))
    except ArithmeticError:
        # Damaged scales: a product or quotient leaves the range of float32, or divides by 0.
        problems = (Problem("the ratio of the scales is not finite", f"below 2^{MAX_SHIFT}"),)
    yield from problems
