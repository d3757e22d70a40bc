"""Runs the graph passes, and finds the first that broke a rule or changed an output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from microtir.config import PassConfig
from microtir.dtype import DType
from microtir.errors import GraphError
from microtir.graph.ir import Array, Graph, Tensor
from microtir.graph.rewriting import GraphPass, Keeps, keeps, named_apart
from microtir.rewrite.extra_passes import GraphFunction, applied
from microtir.rewrite.optimise import BoundSums
from microtir.rewrite.reference import execute, execute_steps
from microtir.rewrite.verify import verify

_SAMPLES = 2
_RUNS = 12  # where states change
_SEED = 20
_ROUNDING = 2.0**-16  # of the largest value
_STEPS = 2.0**-4  # of the largest value: what one step in each of many layers comes to
_LARGEST_QUANTISED = 2  # bytes


def rewritten(
    graph: Graph,
    passes: Sequence[GraphPass],
    options: PassConfig,
    after: Mapping[str, Sequence[GraphFunction]] = MappingProxyType({}),
) -> Graph:
    """Return the graph after the passes, verified.

    With `tir.verify_each_pass` the rules are checked after each of them, with
    `tir.replay_each_pass` the reference also computes the model before and after each, on random
    inputs within their declared ranges.

    Args:
        graph: to rewrite.
        passes: in the order in which they run.
        options: what is checked on the way.
        after: functions of the user, by the name of the pass behind which they run.

    Raises:
        GraphError: names the rule, and with these options the pass; or the function of the user.
    """
    for graph_pass in passes:
        before, graph = graph, named_apart(graph_pass(graph))
        if graph is not before:
            _check(before, graph, graph_pass, options)
        name = graph_pass.name
        has_bounds = any(node.sums is not None for node in graph.nodes)
        functions = after.get(name, ())
        graph = changed_by_user(graph, functions, f"after['{name}']", has_bounds=has_bounds)
    verify(graph)
    return graph


def changed_by_user(
    graph: Graph, functions: Sequence[GraphFunction], point: str, *, has_bounds: bool
) -> Graph:
    """Return a graph as functions of the user rewrite it, verified.

    Args:
        graph: to rewrite.
        functions: of the user.
        point: the argument that holds them.
        has_bounds: whether sums are bounded by now: what changes may make the bounds wrong.
    """
    changed = applied(functions, point, graph, _check_rules)
    return BoundSums()(changed) if has_bounds and changed is not graph else changed


def _check(before: Graph, after: Graph, graph_pass: GraphPass, options: PassConfig) -> None:
    """Check what a pass made, as far as options ask for it."""
    if options.verify_each_pass or options.replay_each_pass:
        _verify_after(graph_pass.name, after)
    if options.replay_each_pass and keeps(graph_pass) is not Keeps.NOTHING:
        check_meaning(before, after, graph_pass.name, keeps(graph_pass))


def _check_rules(_before: Graph, after: Graph, _name: str) -> None:
    verify(after)


def check_meaning(before: Graph, after: Graph, name: str, promise: Keeps = Keeps.BITS) -> None:
    """Compare every output of two graphs, bit for bit, on random inputs.

    Where states have become others, the results of runs one after the other are compared.  Where
    a pass keeps less than bits, numbers may differ by what rounding makes of that.

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
            _compare(expected, actual, before, name, promise)
        return
    for _ in range(_SAMPLES):
        inputs = {t.name: _random(generator, before, t) for t in before.inputs}
        # States that no result depends on go, and with them what they were.
        names = {t.name for t in (*before.results, *after.outputs)}
        expected = {n: value for n, value in execute(before, inputs).items() if n in names}
        actual = execute(after, {t.name: inputs[t.name] for t in after.inputs})
        _compare(expected, actual, before, name, promise)


def _compare(
    expected: Mapping[str, Array], actual: Mapping[str, Array], graph: Graph, name: str,
    promise: Keeps,
) -> None:  # fmt: skip
    """Refuse an output that differs."""
    for output, value in expected.items():
        if output not in actual or not _is_same(value, actual[output], promise):
            raise GraphError(
                f"pass '{name}' changed the output '{output}'{_first(value, actual, output)}",
                where=f"graph '{graph.name}'",
            )


def _is_same(expected: Array, actual: Array, promise: Keeps) -> bool:
    if actual.tobytes() == expected.tobytes():
        return True
    if (actual.shape, actual.dtype) != (expected.shape, expected.dtype) or promise is Keeps.BITS:
        return False
    if expected.dtype.kind == "f":
        size = float(np.abs(expected).max(initial=0.0))
        error = _ROUNDING if promise is Keeps.SUMS else _STEPS
        return bool(np.allclose(actual, expected, rtol=0.0, atol=error * size, equal_nan=True))
    if promise is Keeps.SUMS or expected.dtype.itemsize > _LARGEST_QUANTISED:
        return False
    difference = np.abs(actual.astype(np.int64) - expected.astype(np.int64)).max(initial=0)
    return bool(difference <= _STEPS * (1 << 8 * expected.dtype.itemsize))


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
        raise GraphError(f"pass '{name}' made an invalid graph: {error}") from error
