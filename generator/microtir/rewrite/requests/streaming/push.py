"""The graph of a push: it is given the newest frames, and gives what a whole window would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count

import numpy as np

from microtir.graph.ir import Array, Graph, Node, SourceLocation, State, Stream, Tensor
from microtir.graph.names import short_name
from microtir.graph.operator import Operator
from microtir.graph.rewriting import named_apart, substitute
from microtir.operators.movement.definition import Reshape
from microtir.operators.state.definition import Assign, JoinRows, KeepRows, TakeRows
from microtir.rewrite.reference import execute
from microtir.rewrite.requests.streaming.facts import layers_of, zero_of
from microtir.rewrite.requests.streaming.follow import cut
from microtir.rewrite.requests.streaming.rows import Rows
from microtir.rewrite.requests.streaming.shares import Share, input_rows, shares_of
from microtir.rewrite.requests.streaming.timelines import Timelines, timelines


def push_graph(graph: Graph, x: Tensor, axis: int, hop: int) -> Graph:
    """Return the graph that is given `hop` frames, and gives what `graph` gives for a window.

    The window holds the frames of this push and of those before; it begins filled with zeros.

    Args:
        graph: of a whole window, without states.
        x: the argument that holds the window.
        axis: of `x`, along which its rows are frames.
        hop: the frames of a push.
    """
    lines = timelines(graph, x, axis)
    shares = shares_of(graph, lines, hop)
    writer = _Writer(graph, x, hop, lines, shares, _at_rest(graph, x))
    stream = Stream(graph, x, axis, hop, layers_of(graph, lines, shares))
    return replace(named_apart(writer.graph_of_push()), stream=stream)


def _at_rest(graph: Graph, x: Tensor) -> Mapping[Tensor, Array]:
    """Return what each computed tensor holds where all frames are zeros."""
    values: dict[Tensor, Array] = {}

    def observe(node: Node, outputs: tuple[Array, ...]) -> None:
        values.update(zip(node.outputs, outputs, strict=True))

    inputs = {t.name: np.full(t.shape, zero_of(t), t.dtype.value) for t in graph.inputs}
    execute(graph, inputs, observe)
    return {**values, x: inputs[x.name]}


@dataclass(slots=True)
class _Writer:
    """The graph of a push while it is written.

    `pieces` are the rows of each tensor that are there, as tensors of their own; `head` are the
    nodes that come before all others, since they read what states held before.
    """

    graph: Graph
    x: Tensor
    hop: int
    lines: Timelines
    shares: Mapping[Tensor, Share]
    at_rest: Mapping[Tensor, Array]
    pieces: dict[Tensor, list[tuple[Rows, Tensor]]] = field(default_factory=dict)
    seen: dict[tuple[Tensor, Rows], Tensor] = field(default_factory=dict)
    head: list[Node] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    states: list[State] = field(default_factory=list)

    def graph_of_push(self) -> Graph:
        frames = self.tensor(self.x, Rows(0, self.hop), self.x.name)
        last = self.lines.of[self.x].rows
        self.finish(self.x, [(Rows(last - self.hop, last), frames)], self.source("ASSIGN"))
        for node in self.graph.nodes:
            follows = self.lines.follows.get(node)
            if follows is None:
                self.nodes.append(substitute(node, self.wholes(node.inputs)))
            elif not follows.is_view:
                self.follow(node)
        for tensor in self.graph.outputs:
            self.result(tensor)
        ports = {self.x: frames}
        arguments = tuple(ports.get(t, t) for t in self.graph.inputs)
        return replace(
            self.graph,
            inputs=(*arguments, *(state.before for state in self.states)),
            outputs=(*self.graph.outputs, *(state.after for state in self.states)),
            nodes=(*self.head, *self.nodes),
            states=tuple(self.states),
            input_ranges=tuple((ports.get(t, t), known) for t, known in self.graph.input_ranges),
        )

    def follow(self, node: Node) -> None:
        """Compute the rows of a node's outputs that a push computes."""
        follows = self.lines.follows[node]
        parts_of: dict[Tensor, list[tuple[Rows, Tensor]]] = {t: [] for t in node.outputs}
        for run in self.shares[node.outputs[0]].computed:
            inputs = self.inputs(node, run)
            outputs = tuple(self.part(t, run) for t in node.outputs)
            for tensor, part in zip(node.outputs, outputs, strict=True):
                parts_of[tensor].append((run, part))
            if inputs is not None:
                timed = next(t for t in node.inputs if t in self.lines.of)
                read = input_rows(follows, run, self.lines.of[timed].rows)
                op = cut(node, follows, run, read)
                name = node.name if outputs == node.outputs else f"{node.name}, {run}"
                self.nodes.append(replace(node, op=op, inputs=inputs, outputs=outputs, name=name))
        for tensor, parts in parts_of.items():
            self.finish(tensor, parts, node.source)

    def inputs(self, node: Node, run: Rows) -> tuple[Tensor, ...] | None:
        """Return what rows of a node's outputs read; None where that is padding alone."""
        follows = self.lines.follows[node]
        inputs: list[Tensor] = []
        for tensor in node.inputs:
            line = self.lines.of.get(tensor)
            if line is not None:
                read = input_rows(follows, run, line.rows)
                if not read.count:
                    return None
                tensor = self.rows(tensor, read)
            inputs.append(tensor)
        return tuple(inputs)

    def part(self, tensor: Tensor, run: Rows) -> Tensor:
        """Return a tensor for rows of another one; itself for all of them."""
        line, share = self.lines.of[tensor], self.shares[tensor]
        if run.count == line.rows and not share.remembered.count:
            return tensor
        producer = self.graph.producers()[tensor]
        if self.inputs(producer, run) is None:
            data = self.at_rest[tensor].take(range(run.first, run.stop), line.axis)
            return replace(self.tensor(tensor, run), data=data)
        return self.tensor(tensor, run)

    def finish(
        self, tensor: Tensor, parts: list[tuple[Rows, Tensor]], source: SourceLocation
    ) -> None:
        """Note the rows of a tensor that are there, those that are kept among them."""
        share = self.shares[tensor]
        kept_rows = share.remembered
        if not kept_rows.count:
            self.pieces[tensor] = parts
            return
        before = [(rows, part) for rows, part in parts if rows.stop == kept_rows.first]
        behind = [(rows, part) for rows, part in parts if rows.first == kept_rows.stop]
        whole = Rows(before[0][0].first if before else kept_rows.first, behind[0][0].stop)
        state = self.state(tensor, whole)
        axis = self.lines.of[tensor].axis
        stay = self.tensor(tensor, kept_rows, f"{state.name}_kept")
        first = kept_rows.first - whole.first + share.shift
        self.head.append(
            Node(KeepRows(axis, first, share.shift), (state.before,), (stay,), stay.name, source)
        )
        joined = tuple(part for _, part in (*before, (kept_rows, stay), *behind))
        self.nodes.append(Node(JoinRows(axis), joined, (state.after,), state.name, source))
        others = [piece for piece in parts if piece not in (*before, *behind)]
        self.pieces[tensor] = [*others, (whole, state.after)]

    def state(self, tensor: Tensor, rows: Rows) -> State:
        line = self.lines.of[tensor]
        name = self.fresh(f"{short_name(tensor.name)}_rows")
        before, after = self.tensor(tensor, rows, name), self.tensor(tensor, rows, f"{name}_after")
        share = self.shares[tensor]
        # Steady rows are alike where all frames are; all others are computed before they are read.
        constant_rows = self.at_rest[tensor].take([share.remembered.first], line.axis)
        initial = np.repeat(constant_rows, rows.count, line.axis)
        self.states.append(State(before, after, initial, share.turns))
        return self.states[-1]

    def fresh(self, name: str) -> str:
        """Return a name that no tensor and no state has: fused layers share their first names."""
        taken = {tensor.name for tensor in self.graph.tensors()}
        taken.update(state.name for state in self.states)
        numbered = (f"{name}_{number}" for number in count(2))
        return next(each for each in chain([name], numbered) if each not in taken)

    def rows(self, tensor: Tensor, rows: Rows) -> Tensor:
        """Return rows of a tensor, which are there, as a tensor."""
        key = tensor, rows
        if key not in self.seen:
            self.seen[key] = self.view(tensor, rows)
        return self.seen[key]

    def view(self, tensor: Tensor, rows: Rows) -> Tensor:
        """Return new rows of a tensor, as a view of what is there."""
        if tensor in self.pieces:
            return self.taken(tensor, rows)
        node = self.graph.producers()[tensor]
        follows = self.lines.follows[node]
        (source,) = node.inputs
        read = self.rows(source, input_rows(follows, rows, self.lines.of[source].rows))
        if not isinstance(node.op, Reshape):
            return read
        is_all = rows.count == self.lines.of[tensor].rows
        return self.emitted(Reshape(), read, tensor if is_all else self.tensor(tensor, rows))

    def taken(self, tensor: Tensor, rows: Rows) -> Tensor:
        """Return rows of a piece that holds them."""
        there, piece = next(p for p in self.pieces[tensor] if p[0].holds(rows))
        if there == rows:
            return piece
        op = TakeRows(self.lines.of[tensor].axis, rows.first - there.first)
        return self.emitted(op, piece, self.tensor(tensor, rows, f"{tensor.name}, {rows} of it"))

    def wholes(self, tensors: Sequence[Tensor]) -> Mapping[Tensor, Tensor]:
        """Return all rows of those that have rows along time."""
        timed = [t for t in tensors if t in self.lines.of]
        return {t: self.rows(t, Rows(0, self.lines.of[t].rows)) for t in timed}

    def result(self, tensor: Tensor) -> None:
        """Compute a result of the graph where it is not there yet: a copy of all rows."""
        whole = self.wholes([tensor]).get(tensor, tensor)
        if whole is not tensor:
            self.emitted(Assign(), whole, tensor)

    def emitted(self, op: Operator, source: Tensor, target: Tensor) -> Tensor:
        where = self.source(op.name.upper())
        self.nodes.append(Node(op, (source,), (target,), target.name, where))
        return target

    def tensor(self, tensor: Tensor, rows: Rows, name: str = "") -> Tensor:
        axis, shape = self.lines.of[tensor].axis, tensor.shape
        type_ = replace(tensor.type, shape=(*shape[:axis], rows.count, *shape[axis + 1 :]))
        return Tensor(name or f"{tensor.name}, {rows}", type_)

    def source(self, operator: str) -> SourceLocation:
        """Return where a node that no file has comes from."""
        file = self.graph.nodes[0].source.file if self.graph.nodes else ""
        return SourceLocation(file, -1, operator)
