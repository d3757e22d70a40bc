"""Where tensors live while operators run, and what an output may take over from an input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from microtir.graph.ir import Graph, Node, Tensor
from microtir.plan.nest import NEVER, History


class Views:
    """Union of tensors that share memory, built up view by view.

    The root is the tensor that the memory is known by: a graph input or output if the class
    holds one, since those lie in the caller's memory.
    """

    def __init__(self, graph: Graph) -> None:
        self._parent: dict[Tensor, Tensor] = {}
        self._fixed = frozenset((*graph.inputs, *graph.outputs))

    def root(self, tensor: Tensor) -> Tensor:
        """The tensor whose memory this one lies in."""
        while tensor in self._parent:
            tensor = self._parent[tensor]
        return tensor

    def merge(self, node: Node) -> bool:
        """Let the output of a view share its input's memory; False if it must be copied.

        Two tensors of the caller (input to output, or two outputs) are different memory, and a
        constant lies in flash: those are copied.
        """
        source, target = self.root(node.inputs[0]), self.root(node.output)
        if source.is_constant or (source in self._fixed and target in self._fixed):
            return False
        if target in self._fixed:
            self._parent[source] = target
        else:
            self._parent[target] = source
        return True


@dataclass(frozen=True, slots=True)
class Storage:
    """Where tensors live: `root` shares memory with a tensor; `caller` is not the workspace.

    Lifetimes are positions in the graph, both inclusive: -1 for what is there from the start, the
    number of operators for what is needed at the end.
    """

    root: Mapping[Tensor, Tensor]
    first: Mapping[Tensor, int]
    last: Mapping[Tensor, int]
    shared: frozenset[Tensor]
    caller: frozenset[Tensor]

    @staticmethod
    def of(graph: Graph, root: Mapping[Tensor, Tensor], caller: Sequence[Tensor]) -> Storage:
        """The lifetimes of a graph whose views share the memory of their roots."""
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
        last.update({root[tensor]: len(graph.nodes) for tensor in graph.outputs})
        shared = [t for t, r in root.items() if t is not r]
        return Storage(
            root, first, last, frozenset((*shared, *(root[t] for t in shared))), frozenset(caller)
        )

    def alive(self, start: int, stop: int) -> Iterator[Tensor]:
        """Roots in the workspace that hold something while operators [start, stop) run."""
        for tensor, first in self.first.items():
            if tensor not in self.caller and first < stop and self.last[tensor] >= start:
                yield tensor

    def is_internal(self, tensor: Tensor, stop: int) -> bool:
        """Whether nobody behind operators [.., stop) sees a tensor, nor what it shares with."""
        return (
            tensor not in self.shared
            and tensor not in self.caller
            and self.last.get(tensor, stop) < stop
        )


@dataclass(frozen=True, slots=True)
class Overlaps:
    """What outputs of the operators [start, stop) may take over from inputs that die in them."""

    storage: Storage
    known: Mapping[Tensor, History]
    start: int
    stop: int

    def most(self, around: Sequence[Tensor]) -> int:
        """Most bytes that one output takes over from one input."""
        dying = [
            t for t in around
            if self.storage.first[t] < self.start and self.storage.last[t] < self.stop
        ]  # fmt: skip
        new = [t for t in around if self.storage.first[t] >= self.start]
        return max((self.of(x, y) for x in dying for y in new), default=0)

    def of(self, x: Tensor, y: Tensor) -> int:
        """Bytes saved by placing y below x at their distance (decision 8)."""
        readers = [t for t in self.known if self.storage.root[t] is x]
        writers = [t for t in self.known if self.storage.root[t] is y]
        if len(readers) != 1 or len(writers) != 1:
            return 0
        (reader,), (writer,) = readers, writers
        oldest, made = self.known[reader].oldest, self.known[writer].made
        both = (oldest != NEVER) & (made > 0)
        ends = made[both] * writer.type.row_bytes - oldest[both] * reader.type.row_bytes
        distance = max(int(ends.max(initial=0)), 0)
        return x.type.bytes + y.type.bytes - max(x.type.bytes + distance, y.type.bytes)
