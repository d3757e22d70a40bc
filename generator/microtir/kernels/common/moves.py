"""Kernels of operators that move elements: loops over regular boxes, around runs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import made_once, packing, refusals
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.statements import at, each, load, seq, store
from microtir.operators.common.rows import RowWindow
from microtir.plan.ir import Calls, Refusal
from microtir.rewrite.facts import moves
from microtir.rewrite.facts.moves import Axis, Box
from microtir.schedule import KernelDescription
from microtir.tir import ir

_MOST = 24  # boxes of a node, each of which has loops of its own

Places = Callable[[te.Expr, te.Expr], ir.Stmt]
"""Emits what is done at a place of the source and at one of the target."""


@made_once.of_node
def boxes_of(node: Node) -> tuple[Box, ...] | None:
    """Return what a node moves; None if that depends on an activation, or takes too many boxes."""
    return moves.boxes_of(node, _MOST)


def nest(axes: Sequence[Axis], source: te.ExprLike, target: te.ExprLike, body: Places) -> ir.Stmt:
    """Emit loops over the axes, outermost first, from these elements on."""
    if not axes:
        return body(te.as_expr(source), te.as_expr(target))
    axis, *inner = axes
    return each(
        f"i{len(inner)}", axis.extent,
        lambda i: nest(inner, source + i * axis.source, target + i * axis.target, body),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mover:
    """A micro-kernel that moves runs, and its instructions."""

    kernel: KernelDescription
    instructions: int


class Moves(Kernel):
    """Boxes of elements, by loops in plain C: for any target."""

    name = "runs"
    operators = moves.MOVING

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: places that are known only while the model runs."""
        return Refusal.FORM if boxes_of(node) is None else None

    def window(self, _node: Node) -> RowWindow | None:
        """Return None: a box may have elements of any row."""
        return None

    def instructions(self, node: Node, _calls: Calls) -> int:
        turns, boxes = self.turns(node)
        of_turn = sum(self.of_box(box, node.outputs[box.output].dtype) for box in boxes)
        return turns * (of_turn + (turns > 1) * _TURN) + _CALL

    def boxes(self, node: Node) -> tuple[Box, ...]:
        return refusals.asked(boxes_of(node))

    def turns(self, node: Node) -> tuple[int, tuple[Box, ...]]:
        """Return how many turns there are, and the boxes of the first one."""
        boxes = self.boxes(node)
        turns = _turns(boxes, node.outputs[0].dtype.bytes)
        if turns == 1:
            return turns, boxes
        inner = (replace(box.axes[0], extent=box.axes[0].extent // turns) for box in boxes)
        return turns, tuple(
            replace(box, axes=(axis, *box.axes[1:])) for box, axis in zip(boxes, inner, strict=True)
        )

    def packed_bytes(self, node: Node) -> int:
        read = {node.inputs[box.input] for box in self.boxes(node) if box.input is not None}
        return sum(tensor.type.bytes for tensor in read if tensor.is_constant)

    def code_bytes(self, node: Node) -> int:
        return _BOX_CODE * (len(self.boxes(node)) - 1)

    def of_box(self, box: Box, dtype: DType) -> int:
        line, _ = _line(box)
        lines = box.runs * box.run // line.extent
        if box.input is None:
            return lines * self.of_constants(line.extent, dtype.bytes)
        turns = line.extent // _AT_ONCE
        return lines * (_COPIED * line.extent + (turns > 1) * _TURN * turns + _LINE)

    def of_constants(self, elements: int, size: int) -> int:
        """Return the instructions that set a line of elements of so many bytes, by words."""
        turns, left = divmod(elements, _AT_ONCE)
        words = turns * size  # each of four bytes
        of_turns = 1 + turns * (2 + (size > 1)) if turns > 2 and words > 4 else 0
        return words + -(-left // 2) + of_turns + _LINE // 2

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the boxes one after the other, in turns where they share a loop."""
        sources = [_source(layer, position) for position in range(len(layer.node.inputs))]
        targets = [layer.output_buffer((1, t.type.elements)) for t in layer.node.outputs]
        turns, boxes = self.turns(layer.node)

        def part(box: Box, turn: te.Expr) -> ir.Stmt:
            source = None if box.input is None else sources[box.input]
            first: te.ExprLike = box.first_source
            to: te.ExprLike = box.first_target
            if turns > 1:
                outer = box.axes[0]
                first = first + turn * (outer.extent * outer.source)
                to = to + turn * (outer.extent * outer.target)
            return self.box(box, source, targets[box.output])(te.as_expr(first), te.as_expr(to))

        body = each("turn", turns, lambda turn: seq(*(part(box, turn) for box in boxes)))
        return layer.function(name, None, body)

    def box(self, box: Box, source: ir.Buffer | None, target: ir.Buffer) -> Places:
        """Return what emits the loops of a box; without a source they store its value."""

        def copied(first: te.Expr, to: te.Expr) -> ir.Stmt:
            value = box.value if source is None else load(source, 0, first)
            return store(target, (0, to), value)

        line, around = _line(box)

        def turn(first: te.Expr, to: te.Expr, count: int) -> ir.Stmt:
            return seq(
                *(copied(first + n * line.source, to + n * line.target) for n in range(count))
            )

        def along(first: te.Expr, to: te.Expr) -> ir.Stmt:
            turns, left = divmod(line.extent, _AT_ONCE)
            last = turns * _AT_ONCE
            by_turns = nest(
                (Axis(turns, _AT_ONCE * line.source, _AT_ONCE * line.target),), first, to,
                lambda first, to: turn(first, to, _AT_ONCE),
            )  # fmt: skip
            rest = turn(first + last * line.source, to + last * line.target, left)
            return seq(*([by_turns] if turns else []), rest)

        return lambda first, to: nest(around, first, to, along)


class MovesByCalls(Moves):
    """Boxes of elements by micro-kernels, each of which has one of the loops around the runs."""

    def boxes(self, node: Node) -> tuple[Box, ...]:
        """Return boxes whose runs are no longer than micro-kernels take."""
        return tuple(part for box in super().boxes(node) for part in _short(box))

    @abstractmethod
    def can_have(self, axis: Axis, run: int, dtype: DType) -> bool:
        """Return whether a micro-kernel may have a loop around runs of so many elements."""

    @abstractmethod
    def mover(self, axis: Axis, run: int, dtype: DType) -> Mover:
        """Return what moves the runs along an axis."""

    def of_box(self, box: Box, dtype: DType) -> int:
        if box.input is None:
            return super().of_box(box, dtype)
        inner, _ = self._inner(box, dtype)
        calls = box.runs // inner.extent
        loops = calls * _AROUND_CALL + _LINE if calls > 1 else _LINE // 2
        return calls * self.mover(inner, box.run, dtype).instructions + loops

    def box(self, box: Box, source: ir.Buffer | None, target: ir.Buffer) -> Places:
        if source is None:
            return super().box(box, source, target)
        inner, around = self._inner(box, target.dtype)
        kernel = self.mover(inner, box.run, target.dtype).kernel

        def moved(first: te.Expr, to: te.Expr) -> ir.Stmt:
            return call(kernel, at(source, 0, first), at(target, 0, to))

        return lambda first, to: nest(around, first, to, moved)

    def _inner(self, box: Box, dtype: DType) -> tuple[Axis, tuple[Axis, ...]]:
        """Return the loop that the micro-kernel has, the longest that it may, and the others."""
        able = [axis for axis in box.axes if self.can_have(axis, box.run, dtype)]
        inner = max(able, key=lambda axis: axis.extent, default=Axis(1, 0, 0))
        return inner, tuple(axis for axis in box.axes if axis is not inner)


def _short(box: Box) -> Iterator[Box]:
    """Yield boxes of shorter runs in the place of a box of long ones."""
    pieces, rest = divmod(box.run, _LONGEST_RUN)
    if pieces:
        axis = Axis(pieces, _LONGEST_RUN, _LONGEST_RUN)
        yield replace(box, axes=(*box.axes, axis), run=_LONGEST_RUN)
    if rest:
        done = pieces * _LONGEST_RUN
        source, target = box.first_source + done, box.first_target + done
        yield replace(box, first_source=source, first_target=target, run=rest)


def _turns(boxes: Sequence[Box], size: int) -> int:
    """Return how many turns move boxes of elements of so many bytes, a part of each box in each.

    Where the boxes have the rows of an output in common, what is read then keeps ahead of what is
    written, so that an output may lie over the rest of its inputs.
    """
    shared = {(box.output, *((a.extent, a.target) for a in box.axes[:1])) for box in boxes}
    if len(boxes) < 2 or len(shared) > 1 or not boxes[0].axes:
        return 1
    rows, target = boxes[0].axes[0].extent, boxes[0].axes[0].target
    places = [box.first_target for box in boxes]
    if max(places) - min(places) >= target:
        return 1
    most = sum(box.runs * box.run for box in boxes) * size // (len(boxes) * _LEAST_OF_TURN)
    return max(n for n in range(1, max(1, min(most, _MOST_TURNS)) + 1) if rows % n == 0)


_MOST_TURNS = 32
_LEAST_OF_TURN = 512  # bytes that a box has in a turn, on average
_LONGEST_RUN = 1 << 13  # elements of a call: loops count bytes in 16 bits
_AROUND_CALL = 6  # instructions of a loop in C around a call
_BOX_CODE = 24  # bytes of code of a box behind the first one
_AT_ONCE = 4  # elements of a turn of the innermost loop
_COPIED = 2  # instructions for an element
_TURN, _LINE, _CALL = 4, 6, 3  # for a turn, for a whole innermost loop, and for the call


def _line(box: Box) -> tuple[Axis, tuple[Axis, ...]]:
    """Return the innermost loop, a run or what is longest, and those around it."""
    if box.run > 1 or not box.axes:
        return Axis(box.run, 1, 1), box.axes
    line = max(box.axes, key=lambda axis: axis.extent)
    return line, tuple(axis for axis in box.axes if axis is not line)


def _source(layer: Layer, position: int) -> ir.Buffer:
    """Return an input as one row: whoever follows rows of buffers sees one span of bytes."""
    tensor = layer.node.inputs[position]
    if tensor.data is not None:
        return packing.constant("constant", tensor.data.reshape(1, -1))
    return layer.whole(position, (1, tensor.type.elements)).buffer
