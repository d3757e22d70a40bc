"""Read the turns of a loop once, as nodes that the graph repeats.

A turn is read on trial, with tensors in the place of what goes from turn to turn, until it is known
which of these no turn changes, which count, and how often the loop runs; all that was emitted is
taken back each time.  Where a trial fails, because a turn needs to know its number, say, the reader
writes the turns out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from microtir.dtype import DType
from microtir.errors import MicrotirError, ModelFileError
from microtir.frontend.onnx.emitter import NodeEmitter
from microtir.frontend.onnx.reading_budget import MOST_KNOWN_BYTES
from microtir.frontend.onnx.turns import Followed, TurnNodes
from microtir.graph.ir import Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.operators.arithmetic.definition import Add, Sub
from microtir.operators.common.onnx_loops import FEW_TURNS, Loop, Repeated, Turn
from microtir.operators.control.definition import EndRepeat, Guard, PutItem, Repeat
from microtir.operators.movement.definition import Reshape
from microtir.operators.state.definition import Assign

_MOST_TURNS = 1 << 24


def repeated(emitter: NodeEmitter, loop: Loop) -> Repeated | None:
    """Return the results of a loop of the graph; None if its turns have to be written out."""
    if loop.turns is not None and not FEW_TURNS < loop.turns <= _MOST_TURNS:
        return None
    fixed: frozenset[int] = frozenset()
    places: frozenset[int] = frozenset()
    while True:
        trial = _tried(emitter, loop, fixed, places)
        if trial is None:
            return None
        if trial.fixed == fixed and trial.places == places:
            break
        fixed, places = trial.fixed, trial.places
    if trial.followed.turns <= FEW_TURNS or not trial.fits:
        return None
    return _Emission(emitter, loop, trial).results()


@dataclass(frozen=True, slots=True)
class _Trial:
    """The facts about a loop that were learnt from reading one turn of it.

    Args:
        followed: its turns.
        fixed: positions of values that no turn changes.
        places: positions of integers that are never below 0.
        counter: the position of one that is the number of the turn; None if only that itself is.
        items: the types of what turns add to lists.
    """

    followed: Followed
    fixed: frozenset[int]
    places: frozenset[int]
    counter: int | None
    items: tuple[TensorType, ...]

    @property
    def fits(self) -> bool:
        """Return whether it can be a loop of the graph, whose lists have a known length."""
        most = sum(type_.bytes * self.followed.turns for type_ in self.items)
        return not (self.followed.is_open and self.items) and most <= MOST_KNOWN_BYTES


def _tried(
    emitter: NodeEmitter, loop: Loop, fixed: frozenset[int], places: frozenset[int]
) -> _Trial | None:
    """Read a turn, and take back what it emitted; None if it cannot be read without a number."""
    number = Tensor("number", TensorType((), loop.counter))
    types = [
        tensor if at in fixed else Tensor(f"turn{at}", _plain(tensor.type))
        for at, tensor in enumerate(loop.first)
    ]
    parts, before = emitter.parts, emitter.parts.copied()
    parts.places.update(types[at] for at in places)
    parts.places.add(number)
    parts.turning.update((number, *(x for at, x in enumerate(types) if at not in fixed)))
    try:
        turn = loop.body(number, tuple(types))
        counted = _counted(emitter, number)
    except MicrotirError:
        return None
    finally:
        nodes = tuple(parts.nodes[len(before.nodes) :])
        parts.become(before)
    if any(_plain(a.type) != _plain(b.type) for a, b in zip(turn.states, types, strict=True)):
        return None
    changed = [at for at in range(len(types)) if turn.states[at] is not types[at]]
    if not fixed.isdisjoint(changed):
        return None
    carried = {types[at]: (loop.first[at], turn.states[at]) for at in changed}
    zero = np.array(0, loop.counter.value)
    carried[number] = Tensor("zero", number.type, zero), counted
    followed = TurnNodes(nodes, carried, _condition(turn)).followed(loop.turns)
    if followed is None:
        return None
    followed = replace(followed, is_open=followed.is_open or loop.begins is not None)
    numbers = {at: followed.numbers[types[at]] for at in changed if types[at] in followed.numbers}
    counters = [at for at, seen in numbers.items() if seen == tuple(range(followed.turns))]
    return _Trial(
        followed,
        fixed | (frozenset(range(len(types))) - frozenset(changed)),
        frozenset(at for at, seen in numbers.items() if min(seen) >= 0),
        next(iter(counters), None),
        tuple(_plain(item.type) for item in turn.items),
    )


def _counted(emitter: NodeEmitter, number: Tensor) -> Tensor:
    """Return the number of the next turn."""
    one = emitter.constant(np.array(1, number.dtype.value))
    return emitter.emit(Add(), (number, one), [number.type])[0]


def _condition(turn: Turn) -> Tensor | None:
    """Return what may end a loop behind a turn; None if nothing does."""
    flag = turn.goes_on
    return None if flag is None or (flag.data is not None and flag.data.all()) else flag


def _plain(type_: TensorType) -> TensorType:
    return replace(type_, quantization=None)


@dataclass(frozen=True, slots=True)
class _Emission:
    emitter: NodeEmitter
    loop: Loop
    trial: _Trial

    def results(self) -> Repeated:
        loop, trial, parts = self.loop, self.trial, self.emitter.parts
        turns, is_open = trial.followed.turns, trial.followed.is_open
        changed = [at for at in range(len(loop.first)) if at not in trial.fixed]
        values = [loop.first[at] for at in changed]
        values += [self._zeros((turns, *type_.shape), type_.dtype) for type_ in trial.items]
        values.append(self._zeros((), loop.counter))
        if is_open:
            values.append(self._flag(loop.begins))
        begun = self._emit(Repeat(turns), *(self._emit(Assign(), value)[0] for value in values))
        flag = self._emit(Guard(), begun[-1]) if is_open else ()
        states, number = list(loop.first), begun[len(changed) + len(trial.items)]
        for at, tensor in zip(changed, begun, strict=False):
            states[at] = tensor
        parts.places.update((number, *(states[at] for at in trial.places)))
        turn = loop.body(number, tuple(states))
        index = number if trial.counter is None else states[trial.counter]
        counted = _counted(self.emitter, number)
        places = [self._place(index, at) for at in range(len(trial.items))]
        goes_on = [self._flag(turn.goes_on)] if is_open else []
        lists = zip(begun[len(changed) :], turn.items, places, strict=False)
        new = [
            *(self._emit(Assign(), turn.states[at])[0] for at in changed),
            *(self._emit(PutItem(), *operands)[0] for operands in lists),
            *(self._emit(Assign(), value)[0] for value in (counted, *goes_on)),
        ]
        ends = self._emit(EndRepeat(is_open), *flag, *begun, *new, results=begun)
        reshaped = [self._emit(Reshape(), end)[0] for end in ends]
        last = list(loop.first)
        for at, tensor in zip(changed, reshaped, strict=False):
            last[at] = tensor
        return Repeated(
            tuple(last), tuple(reshaped[len(changed) : len(changed) + len(trial.items)])
        )

    def _place(self, index: Tensor, which: int) -> Tensor:
        """Return where the item of a turn lies in a list."""
        if not (self.loop.from_end and self.loop.from_end[which]):
            return index
        last = np.array(self.trial.followed.turns - 1, index.dtype.value).reshape(index.shape)
        return self._emit(Sub(), self.emitter.constant(last), index)[0]

    def _flag(self, value: Tensor | None) -> Tensor:
        """Return a condition as a scalar; true where there is none."""
        if value is None:
            return self.emitter.constant(np.array(True))
        if value.type.elements != 1:
            raise ModelFileError(
                f"its condition has the shape {value.shape}", where=self.emitter.where,
                legal="a condition with one element", fix="export the model again",
            )  # fmt: skip
        return self.emitter.emit(Reshape(), (value,), [TensorType((), value.dtype)])[0]

    def _zeros(self, shape: tuple[int, ...], dtype: DType) -> Tensor:
        return self.emitter.constant(np.zeros(shape, dtype.value))

    def _emit(
        self, op: Operator, *inputs: Tensor, results: Sequence[Tensor] = ()
    ) -> tuple[Tensor, ...]:
        """Return the results of an operator, of the types of its inputs or of others."""
        own_inputs = tuple(
            tensor
            if tensor.type.quantization is None
            else replace(tensor, type=_plain(tensor.type))
            for tensor in inputs
        )
        parts = self.emitter.parts
        parts.counted.update(
            {new: parts.counted[old] for new, old in zip(own_inputs, inputs, strict=True)
             if old in parts.counted}
        )  # fmt: skip
        of = results or (own_inputs if isinstance(op, Repeat) else own_inputs[:1])
        return self.emitter.emit(op, own_inputs, [_plain(tensor.type) for tensor in of])
