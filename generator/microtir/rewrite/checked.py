"""Runs the graph passes, and finds the first that broke a rule or changed an output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from microtir.config import PassConfig
from microtir.dtype import DType
from microtir.errors import GraphError
from microtir.graph.ir import Array, Graph, Tensor
from microtir.graph.rewriting import GraphPass, named_apart
from microtir.rewrite.reference import execute, execute_steps
from microtir.rewrite.verify import verify

_SAMPLES = 2
_RUNS = 12  # where states change
_SEED = 20
_ROUNDING = 2.0**-16  # of the largest value


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
            check_meaning(before, graph, graph_pass.name, _reorders(graph_pass))
    verify(graph)
    return graph


def _reorders(graph_pass: GraphPass) -> bool:
    """Return whether a pass says that sums of floats come in another order behind it."""
    return bool(getattr(graph_pass, "reorders_sums", False))


def check_meaning(before: Graph, after: Graph, name: str, reorders_sums: bool = False) -> None:
    """Compare every output of two graphs, bit for bit, on random inputs.

    Where states have become others, the results of runs one after the other are compared.  Where
    sums come in another order, floats may differ by what rounding makes of that.

    Raises:
        GraphError: the pass `name` changed one; says the first element that differs.
    """
    generator = np.random.default_rng(_SEED)
    if [(s.name, s.type) for s in before.states] != [(s.name, s.type) for s in after.states]:
        steps = [
            {t.name: _random(generator, before, t) for t in before.arguments} for _ in range(_RUNS)
        ]
        for expected, actual in zip(
            execute_steps(before, steps), execute_steps(after, steps), strict=True
        ):
            _compare(expected, actual, before, name, reorders_sums)
        return
    for _ in range(_SAMPLES):
        inputs = {t.name: _random(generator, before, t) for t in before.inputs}
        # States that no result depends on go, and with them what they were.
        kept = {t.name for t in (*before.results, *after.outputs)}
        expected = {n: value for n, value in execute(before, inputs).items() if n in kept}
        actual = execute(after, {t.name: inputs[t.name] for t in after.inputs})
        _compare(expected, actual, before, name, reorders_sums)


def _compare(
    expected: Mapping[str, Array], actual: Mapping[str, Array], graph: Graph, name: str,
    reorders_sums: bool,
) -> None:  # fmt: skip
    """Refuse an output that differs."""
    for output, value in expected.items():
        if output not in actual or not _is_same(value, actual[output], reorders_sums):
            raise GraphError(
                f"pass '{name}' changed the output '{output}'{_first(value, actual, output)}",
                where=f"graph '{graph.name}'",
            )


def _is_same(expected: Array, actual: Array, reorders_sums: bool) -> bool:
    if actual.tobytes() == expected.tobytes():
        return True
    alike = (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    if not (reorders_sums and alike and expected.dtype.kind == "f"):
        return False
    size = float(np.abs(expected).max(initial=0.0))
    return bool(np.allclose(actual, expected, rtol=0.0, atol=_ROUNDING * size))


def _first(value: Array, actual: Mapping[str, Array], output: str) -> str:
    changed = actual.get(output)
    if changed is None or (changed.shape, changed.dtype) != (value.shape, value.dtype):
        return ", its shape or its type"
    size = value.itemsize
    bits = [np.frombuffer(a.tobytes(), f"V{size}") for a in (value, changed)]
    first = int(np.flatnonzero(bits[0] != bits[1])[0])
    return f": element {first} was {value.reshape(-1)[first]}, is {changed.reshape(-1)[first]}"


def _random(generator: np.random.Generator, graph: Graph, tensor: Tensor) -> Array:
    """Return elements that an input may have; wide integers, which may be indices, are 0."""
    dtype, shape = np.dtype(tensor.dtype.value), graph.type_of_all(tensor).shape
    if tensor.dtype.is_float:
        return generator.uniform(-2.0, 2.0, shape).astype(dtype)
    if tensor.dtype in (DType.INT32, DType.INT64):
        return np.zeros(shape, dtype)
    full = (0, 1) if tensor.dtype is DType.BOOL else (tensor.dtype.min, tensor.dtype.max)
    low, high = dict(graph.input_ranges).get(tensor, full)
    return generator.integers(low, high, shape, endpoint=True).astype(dtype)


def _verify_after(name: str, graph: Graph) -> None:
    try:
        verify(graph)
    except GraphError as error:
        raise GraphError(f"pass '{name}' made a graph that is not well formed: {error}") from error
