"""Define operators that say how often others run: the ends of loops and of branches.

A loop is the operators between a Repeat and its EndRepeat in the order of the graph, a branch those
between a Then and an Otherwise, or an Otherwise and an EndIf; both nest.  They compute nothing.  In
a loop a value that goes from one turn to the next has one memory: what an Assign before the loop
gives it is what Repeat hands to the first turn, and what an Assign at the end of a turn gives it is
what the next one begins with, or what EndRepeat gives.  The results of both branches of an EndIf
have one memory likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from microtir.dtype import DType
from microtir.graph.ir import Node, Tensor
from microtir.graph.operator import Operator
from microtir.operators.common import quantization, types
from microtir.operators.common.shapes import Shape, require
from microtir.operators.common.tflite_operands import MANY
from microtir.operators.definition import Definition, Trait

_PUT = types.TypeRule(
    tuple(
        types.TypeSignature((dtype, dtype, index), dtype)
        for dtype in types.ALL_TYPES
        for index in (DType.INT32, DType.INT64)
    )
)

Aliases: TypeAlias = "tuple[Tensor, ...]"
"""Tensors that have one memory."""


@dataclass(frozen=True, slots=True)
class Repeat(Operator):
    """Begins a loop: gives each turn what the one before has left; at first its inputs."""

    turns: int = 1  # or fewer, where a Guard ends it


@dataclass(frozen=True, slots=True)
class Guard(Operator):
    """Ends a loop before its turns are over if its input is false: the rest of a turn is left out.

    The output stands for the input, for the EndRepeat of the loop.
    """


@dataclass(frozen=True, slots=True)
class EndRepeat(Operator):
    """Ends a loop.

    Inputs are the output of the Guard, if the loop has one, what Repeat gave, and the new values of
    each; outputs are what they are in the end.
    """

    is_guarded: bool = False


@dataclass(frozen=True, slots=True)
class Then(Operator):
    """Begins what runs if its input is true; the output stands for it."""


@dataclass(frozen=True, slots=True)
class Otherwise(Operator):
    """Begins what runs if its input, the output of a Then, is false; the output stands for it."""


@dataclass(frozen=True, slots=True)
class EndIf(Operator):
    """Ends a branch: inputs are the output of the Otherwise, then the results of both branches."""


@dataclass(frozen=True, slots=True)
class PutItem(Operator):
    """Gives one item of a list in memory a new value: inputs are the list, the item, its number.

    The output is the list in the same memory. A number that no item has changes nothing.
    """


Control: TypeAlias = Repeat | Guard | EndRepeat | Then | Otherwise | EndIf


def has_control(nodes: Iterable[Node]) -> bool:
    """Return whether the operators of a graph run in its order alone: loops and branches do."""
    return any(isinstance(node.op, Control) for node in nodes)


def nodes_in_loops(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield the nodes of a graph that run in the turns of a loop, what begins it among them."""
    depth = 0
    for node in nodes:
        depth += isinstance(node.op, Repeat)
        depth -= isinstance(node.op, EndRepeat)
        if depth > 0:
            yield node


def aliases(node: Node) -> Iterator[Aliases]:
    """Yield the tensors of an operator of this family that have one memory."""
    match node.op:
        case Repeat() | Guard() | Then() | Otherwise():
            yield from zip(node.inputs, node.outputs, strict=True)
        case EndRepeat(is_guarded):
            yield from zip(*_halves(node.inputs[is_guarded:]), node.outputs, strict=True)
        case EndIf():
            yield from zip(*_halves(node.inputs[1:]), node.outputs, strict=True)
        case _:
            raise AssertionError(f"'{node.op.name}' is not an operator of control")


def turns_of(node: Node) -> tuple[tuple[Tensor, Tensor], ...]:
    """Return for an EndRepeat what each value was at the beginning of a turn, and its new value."""
    return tuple(zip(*_halves(node.inputs[node.attributes(EndRepeat).is_guarded :]), strict=True))


def _halves(tensors: Sequence[Tensor]) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
    half = len(tensors) // 2
    return tensors[:half], tensors[half:]


def _given(node: Node) -> tuple[Shape, ...]:
    return tuple(tensor.shape for tensor in node.inputs)


def _flag(node: Node) -> tuple[Shape, ...]:
    flag = node.inputs[0]
    require(flag.type.elements == 1, f"a condition of shape {flag.shape}", "one element")
    return (flag.shape,)


def _ended(node: Node) -> tuple[Shape, ...]:
    is_guarded = node.op.is_guarded if isinstance(node.op, EndRepeat) else True
    first, second = _halves(node.inputs[is_guarded:])
    require(
        [t.type for t in first] == [t.type for t in second],
        "values that change their types",
        "equal types",
    )
    return tuple(tensor.shape for tensor in first)


def _put(node: Node) -> tuple[Shape, ...]:
    items, item, index = node.inputs
    require(
        item.type.elements * items.shape[0] == items.type.elements if items.shape else False,
        f"an item of shape {item.shape} for a list of shape {items.shape}",
        "all axes of the list except the first",
    )
    require(index.type.elements == 1, f"an index of shape {index.shape}", "one element")
    return (items.shape,)


def _control(
    op: type[Operator], shapes: Callable[[Node], tuple[Shape, ...]], most: int = MANY
) -> Definition:
    return Definition(
        op,
        types=types.ANY_TYPES,
        quantization=quantization.UNUSED,
        shapes=shapes,
        inputs=(1, most),
        outputs=most,
        traits=frozenset({Trait.CONTROL}),
    )


DEFINITIONS = (
    _control(Repeat, _given),
    _control(Guard, _flag, 1),
    _control(EndRepeat, _ended),
    _control(Then, _flag, 1),
    _control(Otherwise, _flag, 1),
    _control(EndIf, _ended),
    Definition(
        PutItem,
        types=_PUT,
        quantization=quantization.UNUSED,
        shapes=_put,
        inputs=(3, 3),
        traits=frozenset({Trait.CONTROL, Trait.MOVES_DATA}),
    ),
)
