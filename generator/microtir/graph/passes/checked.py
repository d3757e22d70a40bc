"""Runs the graph passes, and finds the first that broke a rule or changed an output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from microtir.config import PassConfig
from microtir.dtype import DType
from microtir.errors import GraphError
from microtir.graph.ir import Array, Graph, Tensor
from microtir.graph.passes.rewrite import GraphPass, named_apart
from microtir.graph.reference import execute
from microtir.graph.verify import verify

_SAMPLES = 2
_SEED = 20


def rewritten(graph: Graph, passes: Sequence[GraphPass], options: PassConfig) -> Graph:
    """Return the graph after the passes, verified.

    With `tir.verify_each_pass` the rules are checked after each of them, with
    `tir.replay_each_pass` the reference also computes the model before and after each, on random
    inputs within their declared ranges.

    Raises:
        GraphError: names the rule, and with these options the pass.
    """
    for graph_pass in passes:
        before, graph = graph, named_apart(graph_pass(graph))
        if graph is before:
            continue
        if options.verify_each_pass or options.replay_each_pass:
            _verify_after(graph_pass.name, graph)
        if options.replay_each_pass:
            check_meaning(before, graph, graph_pass.name)
    verify(graph)
    return graph


def check_meaning(before: Graph, after: Graph, name: str) -> None:
    """Compare every output of two graphs, bit for bit, on random inputs.

    Raises:
        GraphError: the pass `name` changed one; says the first element that differs.
    """
    generator = np.random.default_rng(_SEED)
    for _ in range(_SAMPLES):
        inputs = {t.name: _random(generator, before, t) for t in before.inputs}
        expected, actual = execute(before, inputs), execute(after, inputs)
        for output, value in expected.items():
            if output not in actual or actual[output].tobytes() != value.tobytes():
                raise GraphError(
                    f"pass '{name}' changed the output '{output}'{_first(value, actual, output)}",
                    where=f"graph '{before.name}'",
                )


def _first(value: Array, actual: dict[str, Array], output: str) -> str:
    changed = actual.get(output)
    if changed is None or (changed.shape, changed.dtype) != (value.shape, value.dtype):
        return ", its shape or its type"
    size = value.itemsize
    bits = [np.frombuffer(a.tobytes(), f"V{size}") for a in (value, changed)]
    first = int(np.flatnonzero(bits[0] != bits[1])[0])
    return f": element {first} was {value.reshape(-1)[first]}, is {changed.reshape(-1)[first]}"


def _random(generator: np.random.Generator, graph: Graph, tensor: Tensor) -> Array:
    """Return elements that an input may have; wide integers, which may be indices, are 0."""
    dtype = np.dtype(tensor.dtype.value)
    if tensor.dtype.is_float:
        return generator.uniform(-2.0, 2.0, tensor.shape).astype(dtype)
    if tensor.dtype in (DType.INT32, DType.INT64):
        return np.zeros(tensor.shape, dtype)
    full = (0, 1) if tensor.dtype is DType.BOOL else (tensor.dtype.min, tensor.dtype.max)
    low, high = dict(graph.input_ranges).get(tensor, full)
    return generator.integers(low, high, tensor.shape, endpoint=True).astype(dtype)


def _verify_after(name: str, graph: Graph) -> None:
    try:
        verify(graph)
    except GraphError as error:
        raise GraphError(f"pass '{name}' made a graph that is not well formed: {error}") from error
