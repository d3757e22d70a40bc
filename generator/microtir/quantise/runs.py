"""Run a graph on samples, one after the other, and see its activations."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from microtir.graph.ir import Array, Graph, Node, TensorType
from microtir.operators.common.arrays import dequantized
from microtir.operators.control.definition import EndRepeat, Repeat, nodes_in_loops, turns_of
from microtir.rewrite.reference import Observer, execute


def observed(
    graph: Graph, runs: Iterable[Mapping[str, Array]], observe: Observer
) -> Iterator[Mapping[str, Array]]:
    """Yield the inputs of each run, its states among them, once its nodes were observed.

    Args:
        graph: verified.
        runs: arguments of each run by name, of the graph's types; states go from one run to the
            next.
        observe: is shown each node with its outputs.
    """
    states: dict[str, Array] = {state.before.name: state.initial for state in graph.states}
    for arguments in runs:
        inputs = {**arguments, **states}
        outputs = execute(graph, inputs, observe)
        yield inputs
        states = {state.before.name: outputs[state.after.name] for state in graph.states}


def values(graph: Graph, runs: Iterable[Mapping[str, Array]]) -> Iterator[Mapping[str, Array]]:
    """Yield the values of all inputs and activations of each run, by name; arguments as above."""
    current: dict[str, Array] = {}

    def observe(node: Node, outputs: tuple[Array, ...]) -> None:
        current.update((t.name, value) for t, value in zip(node.outputs, outputs, strict=True))

    for inputs in observed(graph, runs, observe):
        yield {**inputs, **current}
        current.clear()


def as_stored(graph: Graph, runs: Iterable[Mapping[str, Array]]) -> Iterator[Mapping[str, Array]]:
    """Yield arguments of a float graph in the types that a quantised graph takes them in."""
    types = {tensor.name: tensor.type for tensor in graph.arguments}
    for arguments in runs:
        yield {name: stored(array, types[name]) for name, array in arguments.items()}


def stored(array: Array, type_: TensorType) -> Array:
    """Return real numbers as a type stores them, ties away from 0; others as they are."""
    quant = type_.quantization
    if array.dtype.kind != "f" or quant is None:
        return array
    quotient = (array / np.float32(quant.scale)).astype(np.float64)
    nearest = np.trunc(quotient + np.copysign(0.5, quotient)) + quant.zero_point
    return np.asarray(np.clip(nearest, type_.dtype.min, type_.dtype.max), type_.dtype.value)


def real(array: Array, type_: TensorType) -> Array:
    """Return the real numbers that stored values stand for; others as they are."""
    return array if type_.quantization is None else dequantized(array, type_)


_GOLDEN = (5**0.5 - 1) / 2
"""A share of turns whose multiples fall into step with no number of turns."""


def turns(
    graph: Graph, runs: Sequence[Mapping[str, Array]], most: int
) -> tuple[Mapping[str, Array], ...]:
    """Return values by name as they are at the end of some turns of loops, spread over all.

    Values that no operator has given until then are missing.

    Args:
        graph: verified.
        runs: arguments of each run.
        most: turns, at most, of all runs.
    """
    in_loops = {t.name for node in nodes_in_loops(graph.nodes) for t in node.outputs}
    of_a_run = sum(node.op.turns for node in graph.nodes if isinstance(node.op, Repeat))
    share, count = most / max(of_a_run * len(runs), 1), itertools.count()
    seen: list[dict[str, Array]] = []
    current: dict[str, Array] = {}

    def observe(node: Node, outputs: tuple[Array, ...]) -> None:
        if isinstance(node.op, Repeat):  # what another loop has left belongs to no turn of this one
            for name in in_loops - {t.name for t in node.activations}:
                current.pop(name, None)
        elif isinstance(node.op, EndRepeat):
            if next(count) * _GOLDEN % 1.0 < share:
                seen.append(dict(current))
            begun = zip(turns_of(node), outputs, strict=True)
            current.update((turn.name, value) for (turn, _), value in begun)
        current.update((t.name, value) for t, value in zip(node.outputs, outputs, strict=True))

    if of_a_run > 0:
        known = 0
        for inputs in observed(graph, runs, observe):
            current.clear()
            for values_ in seen[known:]:
                values_.update(inputs)
            known = len(seen)
    return tuple(seen)


_RECORDED_BYTES = 1 << 28


def recorded(
    graph: Graph, runs: Sequence[Mapping[str, Array]], most: int
) -> tuple[Mapping[str, Array], ...]:
    """Return the values of all inputs and activations of some runs, by name.

    They are spread over all runs, `most` at most, and fewer where they would take much memory; of
    a graph with states they are the first ones.
    """
    size = sum(t.type.bytes for t in graph.tensors() if not t.is_constant) * graph.images
    count = max(1, min(most, len(runs), _RECORDED_BYTES // max(size, 1)))
    step = 1 if graph.states else len(runs) // count
    return tuple(values(graph, runs[: count * step : step]))
