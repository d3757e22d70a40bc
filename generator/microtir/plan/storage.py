"""Storage of tensors while operators run, and bytes that outputs may take over from inputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from microtir.graph.ir import Graph, Node, Tensor
from microtir.operators.control.definition import Control, EndRepeat, Repeat, aliases
from microtir.operators.state.definition import JoinRows, TakeRows
from microtir.operators.streaming.definition import JoinColumns
from microtir.plan.ir import Layout
from microtir.plan.nest import History
from microtir.plan.nest_simulations import NestSimulations


def loops_of(graph: Graph) -> Iterator[tuple[int, int]]:
    """Yield where each loop begins and ends, inner ones first."""
    begun: list[int] = []
    for number, node in enumerate(graph.nodes):
        if isinstance(node.op, Repeat):
            begun.append(number)
        elif isinstance(node.op, EndRepeat):
            yield begun.pop(), number


class Views:
    """Union of tensors that share memory, built up view by view.

    The root is the tensor that the memory is known by: a graph input or output if the class
    holds one, since those lie in the caller's memory.
    """

    def __init__(self, graph: Graph) -> None:
        self._parent: dict[Tensor, tuple[Tensor, int]] = {}
        self._fixed = frozenset((*graph.inputs, *graph.outputs))

    def root(self, tensor: Tensor) -> Tensor:
        """Return the tensor whose memory this one lies in."""
        while tensor in self._parent:
            tensor, _ = self._parent[tensor]
        return tensor

    def offset(self, tensor: Tensor) -> int:
        """Return the byte of its root at which a tensor begins."""
        offset = 0
        while tensor in self._parent:
            tensor, at = self._parent[tensor]
            offset += at
        return offset

    def merge(self, node: Node) -> bool:
        """Let the output of a view share its input's memory; False if it must be copied.

        Two tensors of the caller (input to output, or two outputs) are different memory, and a
        constant lies in flash: those are copied. What columns are joined from was made for this
        and lies in the output's memory, and so do rows where they can.
        """
        if isinstance(node.op, Control):
            for tensors in aliases(node):
                self.share(tensors)
            return True
        match node.op:
            case JoinColumns():
                self._parent.update(dict.fromkeys(node.inputs, (node.output, 0)))
                return True
            case JoinRows():
                return self._line_up(node)
            case TakeRows(axis, first):
                at = first * math.prod(node.output.shape[axis + 1 :]) * node.output.dtype.bytes
            case _:
                at = 0
        source, target = self.root(node.inputs[0]), self.root(node.output)
        if source.is_constant or (source in self._fixed and target in self._fixed):
            return False
        if target in self._fixed:
            if not (self._is_all(node.inputs[0]) and node.output.type.bytes == source.type.bytes):
                return False
            self._parent[source] = target, 0
        else:
            self._parent[target] = source, at + self.offset(node.inputs[0])
        return True

    def share(self, tensors: Sequence[Tensor]) -> None:
        """Let tensors have one memory: that of the caller's among them, if there is one."""
        roots = dict.fromkeys(map(self.root, tensors))
        fixed = [root for root in roots if root in self._fixed]
        assert len(fixed) < 2, "an Assign gives each memory its value"
        (root, *_) = (*fixed, *roots)
        self._parent.update({other: (root, 0) for other in roots if other is not root})

    def _line_up(self, node: Node) -> bool:
        """Let the inputs lie in the output one after the other, if each has memory of its own."""
        roots = [self.root(tensor) for tensor in node.inputs]
        is_free = all(
            self._is_all(tensor) and not root.is_constant and root not in self._fixed
            for tensor, root in zip(node.inputs, roots, strict=True)
        )
        if not is_free or len(set(roots)) < len(roots):
            return False
        at = 0
        for root in roots:
            self._parent[root] = node.output, at
            at += root.type.bytes
        return True

    def _is_all(self, tensor: Tensor) -> bool:
        """Return whether a tensor takes all memory of its root."""
        return self.offset(tensor) == 0 and tensor.type.bytes == self.root(tensor).type.bytes


@dataclass(frozen=True, slots=True)
class Storage:
    """The storage of tensors: `root` shares memory with a tensor; `caller` is not the workspace.

    Lifetimes are positions in the graph, both inclusive: -1 for what is there from the start, the
    number of operators for what is needed at the end. `living` has for each operator the roots in
    the workspace that hold something while it runs. `sizes` has for each tensor the bytes of all of
    it and of one of its rows.
    """

    root: Mapping[Tensor, Tensor]
    first: Mapping[Tensor, int]
    last: Mapping[Tensor, int]
    shared: frozenset[Tensor]
    caller: frozenset[Tensor]
    living: Sequence[Sequence[Tensor]]
    sizes: Mapping[Tensor, tuple[int, int]]

    @staticmethod
    def of(
        graph: Graph,
        root: Mapping[Tensor, Tensor],
        caller: Sequence[Tensor],
        layouts: Mapping[Tensor, Layout],
    ) -> Storage:
        """Return the lifetimes of a graph whose views share the memory of their roots."""
        first: dict[Tensor, int] = {}
        last: dict[Tensor, int] = {}
        for number, node in enumerate(graph.nodes):
            for tensor in node.inputs:
                if not tensor.is_constant:
                    first.setdefault(root[tensor], -1)
                    last[root[tensor]] = number
            for tensor in node.outputs:
                first.setdefault(root[tensor], number)
                last[root[tensor]] = number
        for begin, end in loops_of(graph):
            # Each turn reads what was there before the loop, so that it stays through all of them.
            last |= {t: end for t, at in last.items() if begin <= at < end and first[t] < begin}
        last.update({root[tensor]: len(graph.nodes) for tensor in graph.outputs})
        shared = [t for t, r in root.items() if t is not r]
        living: list[list[Tensor]] = [[] for _ in graph.nodes]
        for tensor, begin in first.items():
            if tensor not in caller:
                for now in living[max(begin, 0) : last[tensor] + 1]:
                    now.append(tensor)
        return Storage(
            root,
            first,
            last,
            frozenset((*shared, *(root[t] for t in shared))),
            frozenset(caller),
            living,
            {t: (layout.bytes(t.type), layout.row_bytes(t.type)) for t, layout in layouts.items()},
        )

    def bytes(self, tensor: Tensor) -> int:
        return self.sizes[tensor][0]

    def row_bytes(self, tensor: Tensor) -> int:
        return self.sizes[tensor][1]

    def begins_at(self, operator: int) -> frozenset[Tensor]:
        """Return the tensors of the workspace that hold nothing before an operator runs."""
        return frozenset(t for t in self.living[operator] if self.first[t] == operator)

    def left_by(self, operator: int) -> tuple[Tensor, ...]:
        """Return the tensors of the workspace that still hold something once an operator ran."""
        return tuple(
            t for t in self.living[operator] if self.last[t] > operator or self.first[t] == operator
        )

    def is_internal(self, tensor: Tensor, stop: int) -> bool:
        """Return whether nobody behind operators [.., stop) sees a tensor or what it shares."""
        return (
            tensor not in self.shared
            and tensor not in self.caller
            and self.last.get(tensor, stop) < stop
        )


class Overlaps:
    """The bytes that an output may take over from an input that dies in a nest.

    Args:
        storage: of all tensors.
        known: what happens in the nest to each tensor that it reads or writes for others.
        simulations: what is known of nests.
    """

    def __init__(
        self, storage: Storage, known: Mapping[Tensor, History], simulations: NestSimulations
    ) -> None:
        self._storage = storage
        self._known = known
        self._simulations = simulations
        self._seen: dict[Tensor, list[Tensor]] = {}
        for tensor in known:
            self._seen.setdefault(storage.root[tensor], []).append(tensor)
        self._pairs: dict[tuple[Tensor, Tensor], int] = {}

    def most(self, around: Iterable[Tensor], start: int, stop: int) -> int:
        """Return most bytes that one output of [start, stop) takes over from one input.

        Args:
            around: what lives while they run and does not stay inside.
            start: the first operator.
            stop: the one behind the last.
        """
        first, last = self._storage.first, self._storage.last
        dying = [t for t in around if first[t] < start and last[t] < stop]
        new = [t for t in around if first[t] >= start]
        return max((self.saved(x, y) for x in dying for y in new), default=0)

    def drained(self, around: Iterable[Tensor], start: int, stop: int) -> Tensor | None:
        """Return the largest input that dies, where rings may take the place of what was read.

        Those of later operators fill up while the input is read.  Where an output is beside, that
        may take the place instead (`most`), and there is None.
        """
        first, last, size = self._storage.first, self._storage.last, self._storage.bytes
        if any(first[t] >= start for t in around):
            return None
        dying = [(t, self._seen.get(t, ())) for t in around if last[t] < stop]
        readers = [r for t, seen in dying if len(seen) == 1 for r in seen if size(r) == size(t)]
        return max(readers, key=size, default=None)

    def saved(self, x: Tensor, y: Tensor) -> int:
        """Return the bytes that one output takes over from one input, which dies."""
        if (x, y) not in self._pairs:
            self._pairs[x, y] = self._saved(x, y)
        return self._pairs[x, y]

    def _saved(self, x: Tensor, y: Tensor) -> int:
        """Return the bytes saved by placing y below x at their distance."""
        readers, writers = self._seen.get(x, ()), self._seen.get(y, ())
        if len(readers) != 1 or len(writers) != 1:
            return 0
        (reader,), (writer,) = readers, writers
        size = self._storage.bytes
        if size(writer) != size(y) or size(reader) != size(x):
            return 0  # some rows, or columns of y, whose rows are longer
        row = self._storage.row_bytes
        distance = self._simulations.distance(
            self._known[reader], self._known[writer], row(reader), row(writer)
        )
        return size(x) + size(y) - max(size(x) + distance, size(y))
