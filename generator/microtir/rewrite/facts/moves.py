"""The moves of an operator that computes nothing, as few regular boxes of elements.

The meaning of such an operator is asked where each element goes: it is given places in place of
values.  What it answers is cut into boxes, in which source and target are affine in the indices.
So no operator says for itself how it moves: what a kernel copies follows from the meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from microtir.graph.ir import Array, Node
from microtir.graph.operator import Operator
from microtir.operators import record_of
from microtir.operators.indexing import definition as indexing
from microtir.operators.movement import definition as movement
from microtir.operators.rearrangement import definition as rearrangement
from microtir.operators.repetition import definition as repetition
from microtir.operators.resize.definition import ResizeNearestNeighbor

_ONE: tuple[type[Operator], ...] = (
    movement.Transpose,
    movement.Split,
    movement.Unpack,
    movement.StridedSlice,
    repetition.Tile,
    repetition.MirrorPad,
    rearrangement.DepthToSpace,
    rearrangement.SpaceToDepth,
    rearrangement.SpaceToBatch,
    rearrangement.BatchToSpace,
    ResizeNearestNeighbor,
)
_ALL: tuple[type[Operator], ...] = (movement.Pad, movement.Concatenation, movement.Pack)
_INDEXED: tuple[type[Operator], ...] = (indexing.Gather, indexing.GatherNd)

MOVING = (*_ONE, *_ALL, *_INDEXED)
"""Operators that move one input, all of their inputs, or the first one as the second one says."""

_PLACES = 1 << 60  # the first of the numbers that stand for places: constants are 0 among them
_BITS = 40  # of a place within its input

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop of a box: how often it runs, and how many elements source and target go on by."""

    extent: int
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Box:
    """Elements of an output that are copied from one input, or that all have one value.

    Attributes:
        output: number of the output.
        input: number of the input, or None.
        value: of all elements, if there is no input.
        first_source: the element of the input that is copied first.
        first_target: where it goes.
        axes: the loops, outermost first, without that of a run.
        run: how many elements follow each other in source and target.
    """

    output: int
    input: int | None
    value: float
    first_source: int
    first_target: int
    axes: tuple[Axis, ...]
    run: int

    @property
    def runs(self) -> int:
        """Return how many runs there are."""
        return int(np.prod([axis.extent for axis in self.axes], dtype=np.int64))


def is_fixed(node: Node) -> bool:
    """Return whether what a node moves depends on none of its activations."""
    if isinstance(node.op, _ALL):
        return True
    return all(tensor.is_constant for tensor in node.inputs[1:]) and (
        isinstance(node.op, _INDEXED) or len(node.inputs) == 1
    )


def boxes_of(node: Node, most: int) -> tuple[Box, ...] | None:
    """Return what a node of `MOVING` moves, in the order of its outputs.

    None if that depends on an activation, or takes more boxes than `most`.
    """
    if not is_fixed(node):
        return None
    boxes: list[Box] = []
    for number, (places, values) in enumerate(zip(_places(node), _constants(node), strict=True)):
        for part in _cut(_Part(places, values, _steps(places.shape), 0)):
            boxes.append(part.box(number))
            if len(boxes) > most:
                return None
    return tuple(boxes)


def _places(node: Node) -> tuple[Places, ...]:
    """Return for each output the places that its elements come from, -1 for constants."""
    inputs: list[Array] = []
    for number, tensor in enumerate(node.inputs):
        if number and isinstance(node.op, _INDEXED):
            inputs.append(tensor.values)
        else:
            first = _PLACES + (number << _BITS)
            inputs.append(first + np.arange(tensor.type.elements).reshape(tensor.shape))
    # An infinity is no integer; what constants hold is asked for by itself.
    op = replace(node.op, value=0.0) if isinstance(node.op, movement.Pad) else node.op
    outputs = _outputs(replace(node, op=op), inputs)
    return tuple(np.where(y >= _PLACES, y - _PLACES, -1) for y in outputs)


def _constants(node: Node) -> tuple[Array, ...]:
    """Return outputs of which all elements but constants say nothing."""
    inputs = [np.zeros(t.shape, t.dtype.value) if t.data is None else t.data for t in node.inputs]
    return _outputs(node, inputs)


def _outputs(node: Node, inputs: Sequence[Array]) -> tuple[Array, ...]:
    result = record_of(node.op).meaning(node.op, node, *inputs)
    outputs = result if isinstance(result, tuple) else (result,)
    return tuple(np.asarray(y).reshape(t.shape) for y, t in zip(outputs, node.outputs, strict=True))


def _steps(shape: Sequence[int]) -> tuple[int, ...]:
    """Return how many elements neighbours along each axis are apart."""
    return tuple(int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape)))


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A part of an output: the places of its elements, and where these go."""

    places: Places
    values: Array
    steps: tuple[int, ...]
    first: int

    def between(self, axis: int, first: int, last: int) -> _Part:
        at = (slice(None),) * axis + (slice(first, last),)
        start = self.first + first * self.steps[axis]
        return _Part(self.places[at], self.values[at], self.steps, start)

    def folded(self, axis: int, period: int) -> _Part:
        """Return the part with an axis as two, the inner one with `period` elements."""
        shape = self.places.shape
        shape = (*shape[:axis], shape[axis] // period, period, *shape[axis + 1 :])
        step = self.steps[axis]
        steps = (*self.steps[:axis], step * period, step, *self.steps[axis + 1 :])
        return _Part(self.places.reshape(shape), self.values.reshape(shape), steps, self.first)

    def along(self, axis: int, inputs: bool) -> Places:
        """Return the slices along an axis as rows: of places, or of the inputs that have them."""
        slices = np.moveaxis(self.places >> _BITS if inputs else self.places, axis, 0)
        return slices.reshape(len(slices), -1)

    def pieces(self, axis: int, inputs: bool) -> list[_Part]:
        """Return what the part is cut into along an axis; nothing if that has one step."""
        slices = self.along(axis, inputs)
        steps, extent = slices[1:] - slices[:-1], len(slices)
        if not steps.size or _is_even(steps, inputs):
            return []
        for period in range(2, extent // 2 + 1):
            if extent % period == 0 and _is_even(slices[period:] - slices[:-period], inputs):
                return [self.folded(axis, period)]
        is_step = [_is_even(step, inputs) for step in steps]
        firsts = [0]
        for number in range(1, extent):
            first = firsts[-1]
            if not is_step[number - 1] or steps[number - 1, 0] != steps[first, 0]:
                firsts.append(number)
        ends = [*firsts[1:], extent]
        return [self.between(axis, first, end) for first, end in zip(firsts, ends, strict=True)]

    def box(self, output: int) -> Box:
        """Return the part as a box; its steps are the same everywhere."""
        place = int(self.places.flat[0])
        is_copied = place >= 0
        axes = [
            Axis(extent, int(np.diff(self.along(axis, inputs=False)[:2, 0])[0]), self.steps[axis])
            for axis, extent in enumerate(self.places.shape)
            if extent > 1
        ]
        joined = _joined(axes if is_copied else [Axis(a.extent, a.target, a.target) for a in axes])
        run = next((a.extent for a in joined if a.source == a.target == 1), 1)
        around = [a for a in joined if not a.source == a.target == 1]
        value = 0.0 if is_copied else self.values.flat[0].item()
        return Box(
            output,
            place >> _BITS if is_copied else None,
            value,
            place % (1 << _BITS) if is_copied else 0,
            self.first,
            tuple(sorted(around, key=lambda axis: -axis.target)),
            run,
        )


def _is_even(steps: Places, inputs: bool) -> bool:
    """Return whether steps are one and the same; from input to input there is no step."""
    return bool((steps == (0 if inputs else steps.flat[0])).all())


def _cut(part: _Part) -> Iterator[_Part]:
    """Yield parts of a part in which every axis has one step.

    Inputs are parted first: the rows of two that stand side by side have no common step.  Of axes
    that can be cut, the one is that gives the fewest parts.
    """
    if not part.places.size:
        return
    for inputs in (True, False):
        ways = [part.pieces(axis, inputs) for axis in range(part.places.ndim)]
        cut = min(filter(None, ways), key=len, default=None)
        if cut is not None:
            for piece in cut:
                yield from _cut(piece)
            return
    yield part


def _joined(axes: Sequence[Axis]) -> list[Axis]:
    """Return axes of which none goes on where another one ends."""
    left = sorted(axes, key=lambda axis: axis.target)
    number = 0
    while number < len(left):
        inner = left[number]
        ends = (inner.extent * inner.source, inner.extent * inner.target)
        outer = next((a for a in left if (a.source, a.target) == ends and a is not inner), None)
        if outer is None:
            number += 1
            continue
        left[number] = Axis(inner.extent * outer.extent, inner.source, inner.target)
        left.remove(outer)
        number = 0
    return left
