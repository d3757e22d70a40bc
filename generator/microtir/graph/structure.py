"""Keys of nodes: nodes with equal keys compute the same function of tensors of the same types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from microtir.graph.ir import Node, Tensor

Structure: TypeAlias = tuple[object, ...]
_Result = TypeVar("_Result")

_COMPARED_BYTES = 1024  # of a constant; larger ones count as different if they are two tensors


def structure_of(nodes: Sequence[Node]) -> Structure:
    """Return a key of nodes that follow each other: all but the names and places of their tensors.

    Tensors are numbered as they appear, so that the key also says which node reads what of which.
    """
    numbers: dict[Tensor, int] = {}
    keys: list[object] = []
    for node in nodes:
        keys += [_operation(node), node.sums, len(node.inputs)]
        keys += [_structure_of(tensor, numbers) for tensor in (*node.inputs, *node.outputs)]
    return tuple(keys)


def _operation(node: Node) -> object:
    """Return the operator; the node if that has no hash, as one of a user may."""
    try:
        hash(node.op)
    except TypeError:
        return node
    return node.op


def _structure_of(tensor: Tensor, numbers: dict[Tensor, int]) -> Structure:
    number, data = numbers.setdefault(tensor, len(numbers)), tensor.data
    if data is None:
        return tensor.type, number
    return tensor.type, number, data.tobytes() if data.nbytes <= _COMPARED_BYTES else tensor


def once_for_equals(function: Callable[[Node], _Result]) -> Callable[[Node], _Result]:
    """Return a function that is computed once for all nodes with equal keys."""
    known: dict[Structure, _Result] = {}

    def result(node: Node) -> _Result:
        key = structure_of((node,))
        if key not in known:
            known[key] = function(node)
        return known[key]

    return result
