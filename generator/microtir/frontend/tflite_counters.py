"""Number of turns of a loop of a TFLite file: its counters, and the terms of its condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from microtir.frontend.stored_integers import stored_integers
from microtir.frontend.tflite_file import FileGraph, FileOperator
from microtir.graph.ir import Tensor
from microtir.operators.common.tflite_schema import BuiltinOperator

_Code = BuiltinOperator


@dataclass(frozen=True, slots=True)
class Counter:
    """A whole number that is `start` before the first turn and grows by `step` in each."""

    start: int
    step: int


@dataclass(frozen=True, slots=True)
class Terms:
    """The facts about the condition of a loop.

    Args:
        turns: the most turns that the counters allow.
        is_guarded: whether something else may end the loop before.
    """

    turns: int
    is_guarded: bool


def counters_of(
    body: FileGraph, arguments: Sequence[Tensor], fixed: Mapping[int, Tensor]
) -> dict[int, Counter]:
    """Return the counters of a loop by the position of their value.

    Args:
        body: what a turn does.
        arguments: the values before the first turn.
        fixed: those that no turn changes.
    """
    makers = {index: operator for operator in body.operators for index in operator.outputs}
    counters: dict[int, Counter] = {}
    for position, tensor in enumerate(arguments):
        maker = makers.get(body.outputs[position])
        start = _constant(tensor)
        if maker is None or maker.code != _Code.ADD or start is None or len(maker.inputs) != 2:
            continue
        own = body.inputs[position]
        others = [index for index in maker.inputs if index != own]
        step = _value(body, others[0], fixed) if len(others) == 1 else None
        if step is not None:
            counters[position] = Counter(start, step)
    return counters


def terms_of(
    condition: FileGraph, counters: Mapping[int, Counter], fixed: Mapping[int, Tensor]
) -> Terms | None:
    """Return how often a condition lets a loop run; None if nothing bounds that."""
    makers = {index: operator for operator in condition.operators for index in operator.outputs}
    positions = {index: position for position, index in enumerate(condition.inputs)}
    bounds: list[int | None] = []
    open_ = [condition.outputs[0]]
    seen: set[int] = set()
    while open_:
        index = open_.pop()
        maker = makers.get(index)
        if maker is not None and maker.code == _Code.LOGICAL_AND and index not in seen:
            seen.add(index)
            open_ += maker.inputs
        else:
            bounds.append(_turns(condition, maker, positions, counters, fixed))
    known = [bound for bound in bounds if bound is not None]
    return Terms(min(known), len(known) < len(bounds)) if known else None


def depends_on(graph: FileGraph, output: int) -> set[int]:
    """Return the positions of the inputs from which a tensor is computed."""
    makers = {index: operator for operator in graph.operators for index in operator.outputs}
    open_, seen = [output], set[int]()
    while open_:
        index = open_.pop()
        if index >= 0 and index not in seen:
            seen.add(index)
            open_ += makers[index].inputs if index in makers else ()
    return {position for position, index in enumerate(graph.inputs) if index in seen}


def _turns(
    graph: FileGraph,
    maker: FileOperator | None,
    positions: Mapping[int, int],
    counters: Mapping[int, Counter],
    fixed: Mapping[int, Tensor],
) -> int | None:
    """Return the turns after which one comparison ends a loop; None if that is not known."""
    if maker is None or maker.code not in _COMPARISONS or len(maker.inputs) != 2:
        return None
    sign, is_strict = _COMPARISONS[BuiltinOperator(maker.code)]
    left, right = maker.inputs
    counter, limit = counters.get(positions.get(left, -1)), _value(graph, right, fixed)
    if counter is None:
        # limit > counter is counter < limit
        sign = -sign
        counter, limit = counters.get(positions.get(right, -1)), _value(graph, left, fixed)
    if counter is None or limit is None:
        return None
    distance, step = sign * (limit - counter.start) + (not is_strict), sign * counter.step
    if distance <= 0:
        return 0
    return -(-distance // step) if step > 0 else None


_COMPARISONS = {
    _Code.LESS: (1, True),
    _Code.LESS_EQUAL: (1, False),
    _Code.GREATER: (-1, True),
    _Code.GREATER_EQUAL: (-1, False),
}
"""Comparisons: the direction in which a counter reaches its limit, and whether that is excluded."""


def _constant(tensor: Tensor) -> int | None:
    """Return the only number that a constant holds."""
    data = tensor.data
    is_known = data is not None and data.size == 1 and data.dtype.kind == "i"
    return int(data.reshape(())) if data is not None and is_known else None


def _value(graph: FileGraph, index: int, fixed: Mapping[int, Tensor]) -> int | None:
    """Return the number that a tensor of a subgraph is in all turns."""
    if index in graph.inputs:
        tensor = fixed.get(graph.inputs.index(index))
        return None if tensor is None else _constant(tensor)
    values = stored_integers(graph.tensors[index]) if index >= 0 else None
    return None if values is None or values.size != 1 else int(values.item())
