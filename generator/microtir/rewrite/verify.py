"""Checks that a graph is well formed: a table of rules, run before and after the graph passes.

A graph that passes has a meaning: `graph.reference` evaluates it, and lowering may rely on every
fact checked here.  A failure is a defect of a frontend or of a pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

from microtir.errors import GraphError
from microtir.graph.ir import Graph, Node, Quantization, Tensor
from microtir.operators.common.problem import Problem, Rule
from microtir.rewrite.facts import rules

_GraphRule: TypeAlias = Callable[[Graph], Iterator[GraphError]]

MAX_TENSOR_BYTES = (1 << 31) - 1
"""Largest tensor, in bytes: generated code indexes with int32."""


def verify(graph: Graph) -> None:
    """Check all rules; the first that is broken is raised.

    Raises:
        GraphError: names the node, the tensor, and what would be legal.
    """
    for rule in RULES.values():
        for error in rule(graph):
            raise error


def _where(node: Node, tensor: Tensor | None = None) -> str:
    place = f"{node.source} ('{node.name}')"
    return f"{place}: tensor '{tensor.name}'" if tensor else place


def _repeated(names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield name
        seen.add(name)


def _unique_names(graph: Graph) -> Iterator[GraphError]:
    for name in _repeated(node.name for node in graph.nodes):
        yield GraphError(f"two nodes are called '{name}'", where=graph.name)
    for name in _repeated(tensor.name for tensor in graph.tensors()):
        yield GraphError(f"two tensors are called '{name}'", where=graph.name)


def _inputs_are_free(graph: Graph) -> Iterator[GraphError]:
    if not graph.outputs:
        yield GraphError("the graph has no outputs", where=graph.name, legal="one or more")
    for tensor in graph.inputs:
        if tensor.is_constant:
            yield GraphError("an input is a constant", where=f"{graph.name}: '{tensor.name}'")
    for name in _repeated(tensor.name for tensor in graph.inputs):
        yield GraphError(f"'{name}' is listed twice as an input", where=graph.name)
    for name in _repeated(tensor.name for tensor in graph.outputs):
        yield GraphError(f"'{name}' is listed twice as an output", where=graph.name)


def _states(graph: Graph) -> Iterator[GraphError]:
    """Check that every state is an input and an output of its own, with an initial value."""
    for state in graph.states:
        where = f"{graph.name}: state '{state.name}'"
        if state.before not in graph.inputs or state.after not in graph.outputs:
            yield GraphError("the state is not an input and an output", where=where, legal="both")
        if state.turns < 1:
            yield GraphError(f"the state has {state.turns} values", where=where, legal="1 or more")
        if state.before.type != state.after.type:
            yield GraphError("the state has different types before and after a run", where=where)
        data = state.initial
        if data.shape != state.type.shape or data.dtype != state.type.dtype.value:
            yield GraphError(
                f"the initial value is {data.dtype} {data.shape}",
                where=where,
                legal=f"{state.type.dtype.value} {state.type.shape}",
            )
    for name in _repeated(t.name for state in graph.states for t in (state.before, state.after)):
        yield GraphError(f"'{name}' belongs to two states", where=graph.name)


def _images(graph: Graph) -> Iterator[GraphError]:
    """Check that several images are told apart by the first axes, and keep nothing for later."""
    if graph.images < 1:
        yield GraphError(f"{graph.images} images in the graph", where=graph.name, legal="1 or more")
    if graph.images > 1 and graph.states:
        yield GraphError("several images would share a state", where=graph.name)
    for tensor in (*graph.inputs, *graph.outputs):
        if graph.images > 1 and not tensor.shape:
            where = f"{graph.name}: '{tensor.name}'"
            yield GraphError("a scalar has no axis of images", where=where, legal="an axis")
    ranks = {tensor.name: len(tensor.shape) for tensor in (*graph.inputs, *graph.outputs)}
    for name, axis in graph.image_axes:
        if not 0 <= axis < ranks.get(name, 0):
            where = f"{graph.name}: '{name}'"
            yield GraphError(
                f"axis {axis} of the images does not exist", where=where, legal="an existing axis"
            )


def _order(graph: Graph) -> Iterator[GraphError]:
    """Check that every tensor is produced once, and before it is used."""
    known = set(graph.inputs)
    computed = {tensor for node in graph.nodes for tensor in node.outputs}
    for node in graph.nodes:
        for tensor in node.inputs:
            if not tensor.is_constant and tensor not in known:
                yield GraphError("the tensor is not computed yet", where=_where(node, tensor))
        for tensor in node.outputs:
            if tensor in known:
                yield GraphError("the tensor is computed twice", where=_where(node, tensor))
            if tensor.is_constant:
                yield GraphError("an operator computes a constant", where=_where(node, tensor))
            known.add(tensor)
    for tensor in graph.outputs:
        if tensor not in computed:
            yield GraphError(
                "an output is never computed",
                where=f"{graph.name}: '{tensor.name}'",
                legal="the result of an operator, which may be a copy of an input or a constant",
            )


def _tensors(graph: Graph) -> Iterator[GraphError]:
    for tensor in dict.fromkeys((*graph.tensors(), *graph.outputs)):
        where = f"{graph.name}: tensor '{tensor.name}'"
        if min(tensor.shape, default=1) < 1:
            yield GraphError(
                f"the tensor has no elements, because its shape is {tensor.shape}",
                where=where,
                legal="extents of 1 or more",
            )
        if tensor.type.bytes > MAX_TENSOR_BYTES:
            yield GraphError(
                f"the tensor has {tensor.type.bytes} bytes", where=where, legal="fewer than 2^31"
            )
        data = tensor.data
        if data is not None and (data.shape != tensor.shape or data.dtype != tensor.dtype.value):
            yield GraphError(
                f"the data of the constant is {data.dtype} {data.shape}",
                where=where,
                legal=f"{tensor.dtype.value} {tensor.shape}",
            )
        quant = tensor.type.quantization
        if quant is not None:
            for what, legal in _quantization(tensor, quant):
                yield GraphError(what, where=where, legal=legal)


def _quantization(tensor: Tensor, quant: Quantization) -> Iterator[tuple[str, str]]:
    if not tensor.dtype.is_int:
        # A constant may remember what it was stored as until the layers of integers are found.
        if tensor.data is None:
            yield f"{tensor.dtype.value} is quantised", "integer types"
        return
    count = 1
    if quant.axis is not None:
        if not 0 <= quant.axis < len(tensor.shape):
            yield f"it is quantised along axis {quant.axis}", f"an axis of {tensor.shape}"
            return
        count = tensor.shape[quant.axis]
    if not len(quant.scales) == len(quant.zero_points) == count:
        numbers = f"{len(quant.scales)} scales and {len(quant.zero_points)} zero points"
        yield f"the quantisation has {numbers}", f"{count} of each"
    # A scale of 0 says that a constant is 0; activations are divided by theirs.
    if not all(
        math.isfinite(scale) and (scale > 0 or (scale == 0 and tensor.is_constant))
        for scale in quant.scales
    ):
        yield "a scale is not a positive finite number", "above 0; for a constant also 0"
    low, high = tensor.dtype.min, tensor.dtype.max
    if not all(low <= zero_point <= high for zero_point in quant.zero_points):
        yield "a zero point is outside its type", f"{low} to {high}"


def _each_node(rule: Rule) -> _GraphRule:
    """Return a rule over graphs from one over nodes."""

    def check(graph: Graph) -> Iterator[GraphError]:
        for node in graph.nodes:
            for problem in rule(node):
                yield _error(node, problem)

    return check


def _error(node: Node, problem: Problem) -> GraphError:
    where = _where(node, problem.tensor)
    return GraphError(problem.what, where=where, legal=problem.legal)


RULES: Mapping[str, _GraphRule] = MappingProxyType(
    {
        "names are unique": _unique_names,
        "inputs and outputs are distinct": _inputs_are_free,
        "states are inputs and outputs": _states,
        "images lie along first axes": _images,
        "tensors are computed once, before they are used": _order,
        "tensors have elements, and data and quantisation that fit": _tensors,
        "operators have the right number of inputs and outputs": _each_node(rules.arity),
        "operators compute with these types": _each_node(rules.scalar_types),
        "shapes follow from inputs and attributes": _each_node(rules.output_shapes),
        "quantisation is present and valid": _each_node(rules.quantization),
        "requantisation has a fixed-point form": _each_node(rules.multipliers),
    }
)
"""All rules in the order of checking: later ones rely on earlier ones."""
