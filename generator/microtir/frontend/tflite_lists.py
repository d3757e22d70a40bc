"""Lists that a loop of a TFLite file fills, item by item.

The format has no lists: a converter writes the assignment of item i as everything before it, the
item, and everything behind it, one after the other.  The parts have other shapes in each turn; the
whole has not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from microtir.errors import MicrotirError
from microtir.frontend.stored_integers import stored_integers
from microtir.frontend.tflite_file import FileGraph, FileOperator
from microtir.frontend.tflite_options import read_options
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.movement.tflite import ConcatenationOptions

_Code = BuiltinOperator


@dataclass(frozen=True, slots=True)
class ItemUpdate:
    """The assignment of an item: tensors of the list before it, of the item, and of its number."""

    list: int
    item: int
    index: int


def item_updates(graph: FileGraph) -> dict[int, ItemUpdate]:
    """Return the assignments to lists that are inputs of a subgraph, by the operator's number."""
    makers = {index: operator for operator in graph.operators for index in operator.outputs}
    updates: dict[int, ItemUpdate] = {}
    for operator in graph.operators:
        update = _update(graph, operator, makers)
        if update is not None and update.list in graph.inputs:
            updates[operator.index] = update
    return updates


def _update(
    graph: FileGraph, operator: FileOperator, makers: Mapping[int, FileOperator]
) -> ItemUpdate | None:
    if operator.code != _Code.CONCATENATION or len(operator.inputs) != 3:
        return None
    before, item, behind = operator.inputs
    first, last = makers.get(before), makers.get(behind)
    if first is None or last is None or first.code != _Code.SLICE or last.code != _Code.SLICE:
        return None
    if not _is_along_first_axis(operator) or first.inputs[0] != last.inputs[0]:
        return None
    rank = len(graph.tensors[first.inputs[0]].shape)
    if _numbers(graph, first.inputs[1]) != (0,) * rank:
        return None
    if _numbers(graph, last.inputs[2]) != (-1,) * rank:
        return None
    index = _leading(graph, first.inputs[2], (-1,) * (rank - 1), makers)
    next_ = _leading(graph, last.inputs[1], (0,) * (rank - 1), makers)
    if index is None or next_ is None or not _is_successor(graph, index, next_, makers):
        return None
    return ItemUpdate(first.inputs[0], item, index)


def _is_along_first_axis(operator: FileOperator) -> bool:
    try:
        return read_options(operator, ConcatenationOptions, "").axis == 0
    except MicrotirError:
        return False


def _leading(
    graph: FileGraph, index: int, rest: tuple[int, ...], makers: Mapping[int, FileOperator]
) -> int | None:
    """Return the number that a vector begins with; None if the others are not `rest`."""
    maker = makers.get(index)
    if maker is None or maker.code not in (_Code.CONCATENATION, _Code.PACK):
        return None
    first, *others = maker.inputs
    if sum((_numbers(graph, other) or (None,) for other in others), ()) != rest:
        return None
    shaped = makers.get(first)
    return shaped.inputs[0] if shaped is not None and shaped.code == _Code.RESHAPE else first


def _is_successor(
    graph: FileGraph, index: int, next_: int, makers: Mapping[int, FileOperator]
) -> bool:
    maker = makers.get(next_)
    if maker is None or maker.code != _Code.ADD or index not in maker.inputs:
        return False
    others = [other for other in maker.inputs if other != index]
    return len(others) == 1 and _numbers(graph, others[0]) == (1,)


def _numbers(graph: FileGraph, index: int) -> tuple[int, ...] | None:
    """Return the values of a constant vector or number."""
    values = stored_integers(graph.tensors[index]) if index >= 0 else None
    return None if values is None else tuple(values.reshape(-1).tolist())
