"""Read ONNX's Slice: known parts, and parts of a known length at a place that a model computes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from microtir.errors import ExportProblem, UnsupportedModelError
from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_arithmetic import add, choose, less
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.common.onnx_parts import along, filled, joined, reshaped, strided
from microtir.operators.movement.definition import StridedSlice


@dataclass(frozen=True, slots=True)
class _Moving:
    """A part of an axis at a place that the model computes: its start is an entry of `starts`.

    Backwards the part ends there.
    """

    entry: int
    step: int
    length: int

    @property
    def span(self) -> int:
        """Return how far the last element is from the first."""
        return abs(self.step) * (self.length - 1)


def slice_(node: OnnxNode) -> Tensor:
    """Read Slice: from starts up to ends, which are cut to what there is."""
    x = node.input(0)
    if node.version < 10:
        starts, ends = node.list_of_integers("starts"), node.list_of_integers("ends")
        axes = node.list_of_integers("axes", tuple(range(len(starts))))
        return _known(node, x, starts, ends, axes, (1,) * len(starts))
    return dynamic_slice(node)


def dynamic_slice(node: OnnxNode) -> Tensor:
    """Read a slice whose starts and ends are inputs, as in onnxruntime's DynamicSlice."""
    x, first, last = node.input(0), node.input(1), node.input(2)
    count = first.type.elements
    if count > len(x.shape):
        raise node.malformed(f"starts of the shape {first.shape} for {x.shape}", "one for an axis")
    has_axes, has_steps = (node.optional(index) is not None for index in (3, 4))
    axes = node.integers(3, "the axes") if has_axes else tuple(range(count))
    steps = node.integers(4, "the steps") if has_steps else (1,) * count
    if first.data is None or last.data is None:
        return _computed(node, x, axes, steps)
    starts, ends = node.integers(1, "the starts"), node.integers(2, "the ends")
    return _known(node, x, starts, ends, axes, steps)


def _known(
    node: OnnxNode,
    x: Tensor,
    starts: tuple[int, ...],
    ends: tuple[int, ...],
    axes: tuple[int, ...],
    steps: tuple[int, ...],
) -> Tensor:
    rank = len(x.shape)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise node.malformed(f"starts {starts}, ends {ends}, axes {axes}, steps {steps}")
    begin, strides, extents = [0] * rank, [1] * rank, list(x.shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        at = node.axis(axis, rank)
        taken = _taken(start, end, step, x.shape[at])
        begin[at], strides[at], extents[at] = taken.start, step, len(taken)
    return strided(node, x, begin, strides, extents)


def _taken(start: int, end: int, step: int, extent: int) -> range:
    """Return the places of an axis that a slice takes, as ONNX cuts starts and ends to the axis.

    Backwards, a start before the axis is its first place, where Python has nothing.
    """
    first, last = (n + extent if n < 0 else n for n in (start, end))
    if step > 0:
        return range(min(max(first, 0), extent), min(max(last, 0), extent), step)
    return range(min(max(first, 0), extent - 1), min(max(last, -1), extent - 1), step)


# --- at a computed place --------------------------------------------------------------------------


def _computed(node: OnnxNode, x: Tensor, axes: tuple[int, ...], steps: tuple[int, ...]) -> Tensor:
    """Emit the parts of known axes first, and then one part at the places that are computed.

    A part that does not fit where it should begin is as near to there as it does.  ONNX has it
    shorter, which a loop can do whose turns are written out.
    """
    starts, ends = node.input(1), node.input(2)
    entries = list(zip(node.emitter.distances(starts), node.emitter.distances(ends), strict=False))
    if not len(entries) == starts.type.elements == ends.type.elements == len(axes) == len(steps):
        raise node.malformed(
            f"starts of the shape {starts.shape}, ends of {ends.shape}, axes {axes}, steps {steps}"
        )
    if 0 in steps:
        raise node.malformed(f"the steps are {steps}", "other numbers than 0")
    if node.emitter.changes_by_turn(starts) or node.emitter.changes_by_turn(ends):
        raise _unknown_length(node)
    rank = len(x.shape)
    begin, strides, extents = [0] * rank, [1] * rank, list(x.shape)
    moving: dict[int, _Moving] = {}
    for entry, ((start, end), axis, step) in enumerate(zip(entries, axes, steps, strict=True)):
        at = node.axis(axis, rank)
        if not start.parts and not end.parts:
            taken = _taken(start.number, end.number, step, x.shape[at])
            begin[at], strides[at], extents[at] = taken.start, step, len(taken)
            continue
        if start.parts != end.parts or (end.number - start.number) * step < 0:
            raise _unknown_length(node)
        length = len(range(start.number, end.number, step))
        most = -(-x.shape[at] // abs(step))
        moving[at] = _Moving(entry, step, min(length, most))
    rest = strided(node, x, begin, strides, extents)
    if not moving:
        return rest
    if any(part.length == 0 for part in moving.values()) or rest.type.elements == 0:
        lengths = {at: part.length for at, part in moving.items()}
        shape = tuple(lengths.get(at, extent) for at, extent in enumerate(rest.shape))
        return filled(node, shape, 0, x.dtype)
    return _at_places(node, rest, starts, moving)


def _at_places(node: OnnxNode, x: Tensor, starts: Tensor, moving: dict[int, _Moving]) -> Tensor:
    """Emit the part that holds all elements, and then those of them that steps take."""
    rank, deepest = len(x.shape), max(moving)
    flat = reshaped(node, starts, starts.type.elements)
    is_forward = all(part.step > 0 for part in moving.values())
    begins = [_begin(node, x, flat, moving.get(at), at, is_forward) for at in range(deepest + 1)]
    box = tuple(moving[at].span + 1 if at in moving else n for at, n in enumerate(x.shape))
    op = StridedSlice((0,) * rank, (1,) * rank, box, from_end=is_forward)
    part = node.emit(op, x, joined(node, begins, 0), shape=box)
    first, strides, extents = [0] * rank, [1] * rank, list(box)
    for at, taken in moving.items():
        first[at] = taken.span if taken.step < 0 else 0
        strides[at], extents[at] = taken.step if taken.length > 1 else 1, taken.length
    return strided(node, part, first, strides, extents)


def _begin(
    node: OnnxNode, x: Tensor, starts: Tensor, part: _Moving | None, axis: int, is_forward: bool
) -> Tensor:
    """Return where a part begins; numbers below 0 may stay where all parts go forward."""
    if part is None:
        return node.constant(np.zeros(1, starts.dtype.value))
    entry = along(node, starts, 0, part.entry, 1)
    if is_forward:
        return entry
    is_negative = less(node, entry, 0)
    place = choose(node, is_negative, add(node, entry, x.shape[axis]), entry)
    return add(node, place, -part.span) if part.step < 0 and part.span else place


def _unknown_length(node: OnnxNode) -> UnsupportedModelError:
    return node.unsupported(
        "the model computes its starts or ends, and their distance is not known",
        "constants, values that follow from shapes, and ends at a constant distance from the "
        "starts",
        "slice with a constant length: x[:, i : i + 4]",
        ExportProblem.COMPUTED_SHAPE,
    )
