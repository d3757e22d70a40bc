"""Find what integers that a model computes are beside each other: how far an end is from a start.

Each element is a sum of whole multiples of elements that nothing is known of, and of a number.  Two
of the same multiples differ by what their numbers do, whatever the model is given.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node, Tensor
from microtir.operators.arithmetic.definition import Add, Mul, Sub
from microtir.operators.common.onnx_values import Distance
from microtir.operators.conversion.definition import CastTo
from microtir.operators.indexing.definition import Gather, GatherNd
from microtir.operators.movement.definition import (
    Concatenation,
    Pack,
    Reshape,
    Split,
    StridedSlice,
    Transpose,
    Unpack,
)
from microtir.operators.repetition.definition import Tile
from microtir.operators.unary.definition import Neg
from microtir.rewrite.reference import evaluate

_MOST_ELEMENTS = 256
"""Largest number of elements of a tensor whose elements are followed one by one."""

_MOVES = (Concatenation, Pack, Reshape, Split, Tile, Transpose, Unpack)
_PICKS = (Gather, GatherNd, StridedSlice)
"""Operators whose operands behind the first say which of its elements are taken."""

_WIDER = ((DType.INT32, DType.INT64), (DType.INT32, DType.INT32), (DType.INT64, DType.INT64))

_Elements = tuple[Distance, ...]


def known_distances(tensor: Tensor, nodes: Sequence[Node]) -> tuple[Distance, ...]:
    """Return what each element of a tensor of integers is, in the order of memory.

    Args:
        tensor: of integers.
        nodes: of the graph so far.
    """
    makers = {output: node for node in nodes for output in node.outputs}
    known: dict[Tensor, _Elements] = {}
    waiting = [tensor]
    while waiting:
        current = waiting[-1]
        node = makers.get(current)
        sources = _sources(current, node)
        missing = [source for source in sources if source not in known]
        if missing:
            waiting.extend(missing)
            continue
        waiting.pop()
        if current not in known:
            known[current] = _elements(current, node if sources else None, known)
    return known[tensor]


def depends_on(tensor: Tensor, others: Collection[Tensor], nodes: Sequence[Node]) -> bool:
    """Return whether a tensor is one of others, or follows from one of them."""
    wanted = {tensor}
    for node in reversed(nodes):
        if others and not wanted.isdisjoint(node.outputs):
            wanted.update(node.inputs)
    return not wanted.isdisjoint(others)


def _sources(tensor: Tensor, node: Node | None) -> tuple[Tensor, ...]:
    """Return the operands that the elements of a tensor follow from; none if nothing is known."""
    if node is None or tensor.data is not None or not _is_looked_into(tensor):
        return ()
    op = node.op
    if isinstance(op, CastTo):
        known = (node.inputs[0].dtype, tensor.dtype) in _WIDER
        return node.inputs if known and _is_looked_into(node.inputs[0]) else ()
    if isinstance(op, _PICKS):
        sources = node.inputs[:1]
        if any(index.data is None for index in node.inputs[1:]):
            return ()
    elif isinstance(op, _MOVES) or op in (Add(), Sub(), Mul(), Neg()):
        sources = node.inputs
    else:
        return ()
    return sources if all(map(_is_looked_into, sources)) else ()


def _is_looked_into(tensor: Tensor) -> bool:
    return tensor.dtype in (DType.INT32, DType.INT64) and tensor.type.elements <= _MOST_ELEMENTS


def _elements(tensor: Tensor, node: Node | None, known: Mapping[Tensor, _Elements]) -> _Elements:
    """Return what the elements of a tensor are; without a node they are themselves, or numbers."""
    if tensor.data is not None and _is_looked_into(tensor):
        return tuple(
            Distance(frozenset(), int(value)) for value in tensor.data.reshape(-1).tolist()
        )
    if node is None:
        count = min(tensor.type.elements, _MOST_ELEMENTS)
        return tuple(_unknown(tensor, place) for place in range(count))
    op = node.op
    if isinstance(op, CastTo):
        return known[node.inputs[0]]
    if isinstance(op, _MOVES + _PICKS):
        return _moved(tensor, node, known)
    operands = [_spread(known[x], x, tensor) for x in node.inputs]
    if isinstance(op, Neg):
        return tuple(value.times(-1) for value in operands[0])
    pairs = zip(*operands, strict=True)
    if isinstance(op, Add):
        return tuple(a.plus(b) for a, b in pairs)
    if isinstance(op, Sub):
        return tuple(a.plus(b.times(-1)) for a, b in pairs)
    return tuple(_product(a, b, tensor, place) for place, (a, b) in enumerate(pairs))


def _product(first: Distance, second: Distance, tensor: Tensor, place: int) -> Distance:
    if not second.parts:
        return first.times(second.number)
    if not first.parts:
        return second.times(first.number)
    return _unknown(tensor, place)


def _unknown(tensor: Tensor, place: int) -> Distance:
    return Distance(frozenset([((tensor, place), 1)]), 0)


def _spread(values: _Elements, x: Tensor, result: Tensor) -> list[Distance]:
    """Return the elements of an operand for each element of a result."""
    places = np.broadcast_to(np.arange(len(values)).reshape(x.shape), result.shape)
    return [values[place] for place in places.reshape(-1).tolist()]


def _moved(tensor: Tensor, node: Node, known: Mapping[Tensor, _Elements]) -> _Elements:
    """Return elements of operands in the order in which a node moves them.

    It is asked to move numbers that say which elements they are.
    """
    sources = node.inputs[:1] if isinstance(node.op, _PICKS) else node.inputs
    all_: list[Distance] = []
    numbers: list[Array] = []
    for source in sources:
        count = source.type.elements
        numbers.append(np.arange(len(all_), len(all_) + count).reshape(source.shape))
        all_ += known[source]
    typed = [n.astype(s.dtype.value) for n, s in zip(numbers, sources, strict=True)]
    rest = [x.data for x in node.inputs[len(sources) :] if x.data is not None]
    results = evaluate(replace(node, sums=None), [*typed, *rest])
    places = results[node.outputs.index(tensor)]
    return tuple(all_[place] for place in places.reshape(-1).tolist())
