"""Models of whole sequences as models of one step, whose recurrent layers keep their states.

A run of such a model is given one step of the sequence, and gives what the whole model gives for
it.  That is another question than that of streaming, which asks for the newest window of a model
without states: here nothing is ever forgotten, and no layer may look at several steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from microtir.errors import ConfigError
from microtir.graph.ir import Graph, Node, State, Tensor
from microtir.graph.rewriting import Keeps, Rewrite
from microtir.operators import record_of
from microtir.operators.control.definition import PutItem
from microtir.operators.definition import Trait
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.indexing.definition import Gather
from microtir.operators.movement import definition as movement
from microtir.operators.recurrent.definition import Lstm, lstm_extents
from microtir.operators.softmax.definition import LogSoftmax, Softmax
from microtir.operators.state.definition import Assign
from microtir.rewrite.optimise.loops import Carried, Loop, loops_of

_BY_LAST_AXIS = (Softmax, LogSoftmax)


class OneStep(Rewrite):
    """Makes the model of one step of a model of a sequence.

    Raises:
        ConfigError: it has none, or a layer needs other steps than those that were.
    """

    keeps = Keeps.NOTHING

    def __call__(self, graph: Graph) -> Graph:
        if graph.images != 1:
            raise _refused(f"'{graph.name}' computes several images", "one")
        steps = _steps(graph)
        choices = [
            (tensor, axis)
            for tensor in graph.arguments
            for axis, extent in enumerate(tensor.shape)
            if extent == steps
        ]
        if not choices:
            raise _refused(f"no input has an axis of {steps} steps", "an input with a time axis")
        tried = [_tried(graph, steps, tensor, axis) for tensor, axis in choices]
        first_graph = next((result for result in tried if isinstance(result, Graph)), tried[0])
        if isinstance(first_graph, ConfigError):
            raise first_graph
        return first_graph


def _tried(graph: Graph, steps: int, tensor: Tensor, axis: int) -> Graph | ConfigError:
    """Return the model of one step, if an axis of an input is that of the steps; or why not."""
    try:
        return _Steps(graph, steps, {tensor: axis}).graph_of_one()
    except ConfigError as error:
        return error


def _steps(graph: Graph) -> int:
    """Return over how many steps the recurrent layers and loops of a model go."""
    layers = [node for node in graph.nodes if isinstance(node.op, Lstm)]
    loops = [loop.turns for loop in loops_of(graph) if loop.counter is not None]
    counts = sorted({*(lstm_extents(node).steps for node in layers), *loops})
    if not counts:
        raise _refused(
            f"'{graph.name}' has no recurrent layer and no loop over a sequence",
            "a model with a recurrent layer; SVDF and cells with states always run step by step",
        )
    if counts != [counts[0]] or counts == [1]:
        text = " and ".join(map(str, counts))
        raise _refused(
            f"the recurrent layers have {text} steps", "the same number in each, at least 2"
        )
    return counts[0]


def _last_axis_read(node: Node) -> int:
    """Return which axis a fully connected layer multiplies with weights; 0 if it joins several."""
    shape = node.inputs[0].shape
    return len(shape) - 1 if shape[-1] == node.inputs[1].shape[1] else 0


def _is_list(value: Carried, counter: Carried) -> bool:
    """Return whether a value of a loop is the list of what its turns make."""
    node = value.new
    if not isinstance(node.op, PutItem):
        return False
    return node.inputs[0] is value.turn and node.inputs[2] is counter.turn


def _refused(why: str, legal: str) -> ConfigError:
    return ConfigError(
        why,
        where="stateful",
        legal=legal,
        fix="leave stateful out, and pass whole sequences to the model",
    )


@dataclass(slots=True)
class _Steps:
    """Follows an axis of steps through a graph.

    Args:
        graph: of the whole sequence.
        steps: of it.
        axes: which axis of a tensor is that of the steps, of those that have one.
        new_tensors: the tensors of one step.
        states: what recurrent layers keep, beside what the graph keeps already.
    """

    graph: Graph
    steps: int
    axes: dict[Tensor, int]
    new_tensors: dict[Tensor, Tensor] = field(default_factory=dict)
    states: list[State] = field(default_factory=list)
    assigns: list[Node] = field(default_factory=list)

    def graph_of_one(self) -> Graph:
        for tensor, axis in tuple(self.axes.items()):
            self._shorten(tensor, axis)
        nodes = list(self._nodes())
        inputs = (self.new_tensors.get(t, t) for t in self.graph.inputs)
        outputs = (self.new_tensors.get(t, t) for t in self.graph.outputs)
        return replace(
            self.graph,
            inputs=(*inputs, *(state.before for state in self.states)),
            outputs=(*outputs, *(state.after for state in self.states)),
            nodes=(*nodes, *self.assigns),
            states=(*self.graph.states, *self.states),
            input_ranges=tuple((self.new_tensors.get(t, t), r) for t, r in self.graph.input_ranges),
        )

    def _shorten(self, tensor: Tensor, axis: int) -> None:
        """Note that an axis of a tensor is that of the steps."""
        shape = list(tensor.shape)
        shape[axis] = 1
        self.axes[tensor] = axis
        self.new_tensors[tensor] = replace(tensor, type=replace(tensor.type, shape=tuple(shape)))

    def _nodes(self) -> Iterator[Node]:
        """Yield the nodes of one step: of a loop over the steps those of a turn."""
        loops = {loop.start: loop for loop in loops_of(self.graph)}
        begins = {node for loop in loops.values() for node in loop.begins}
        behind = 0
        for number, node in enumerate(self.graph.nodes):
            if number in loops:
                yield from self._turn(loops[number])
                behind = loops[number].stop + 1
            elif number >= behind and node not in begins:
                yield self._node(node)

    def _node(self, node: Node) -> Node:
        if isinstance(node.op, Lstm):
            return self._layer(node)
        over = [tensor for tensor in node.inputs if tensor in self.axes]
        if not over:
            self._check_states(node)
            return self._with_tensors(node)
        op = node.op
        if isinstance(op, movement.StridedSlice):
            return self._slice(node, op)
        axis = self._axis(node, over)
        if axis is None:
            raise self._looks_around(node)
        for output in node.outputs:
            self._shorten(output, axis)
        return self._with_tensors(node)

    def _with_tensors(self, node: Node) -> Node:
        return replace(
            node,
            inputs=tuple(self.new_tensors.get(t, t) for t in node.inputs),
            outputs=tuple(self.new_tensors.get(t, t) for t in node.outputs),
        )

    def _check_states(self, node: Node) -> None:
        """Refuse other states: they would change with each step, not with each sequence."""
        before = {state.before for state in self.graph.states}
        if not before.isdisjoint(node.inputs):
            raise _refused(
                f"'{node.name}' keeps a state from one sequence to the next",
                "states of LSTMs",
            )

    def _axis(self, node: Node, over: list[Tensor]) -> int | None:
        """Return the axis of steps of the outputs of a node, which computes each step by itself."""
        op, axis = node.op, self.axes[over[0]]
        shape, output = over[0].shape, node.outputs[0].shape
        is_first = over == [node.inputs[0]]
        match op:
            case movement.Reshape():
                return self._axis_behind(shape, axis, output)
            case FullyConnected() if is_first and axis < _last_axis_read(node):
                return self._axis_behind((*shape[:-1], output[-1]), axis, output)
            case movement.Transpose(permutation):
                return permutation.index(axis)
            case movement.Concatenation(along):
                same = all(self.axes.get(t) == axis for t in node.inputs)
                return axis if same and along != axis else None
            case movement.Split(along) if is_first and along != axis:
                return axis
            case _ if isinstance(op, _BY_LAST_AXIS) and axis < len(shape) - 1:
                return axis
            case _ if record_of(op).has(Trait.ELEMENTWISE):
                return self._axis_of_all(node, len(shape) - axis)
            case _:
                return None

    def _axis_behind(
        self, shape: tuple[int, ...], axis: int, output: tuple[int, ...]
    ) -> int | None:
        """Return where the axis of steps is after a change of shape, if it is one axis still."""
        before = math.prod(shape[:axis])
        for place, extent in enumerate(output):
            if extent == self.steps and math.prod(output[:place]) == before:
                return place
        return None

    def _axis_of_all(self, node: Node, from_end: int) -> int | None:
        """Return the axis of steps of an elementwise operator, counted from the last axis."""
        for tensor in node.inputs:
            rank = len(tensor.shape)
            if tensor in self.axes:
                if rank - self.axes[tensor] != from_end:
                    return None
            elif rank >= from_end and tensor.shape[rank - from_end] != 1:
                return None
        return len(node.output.shape) - from_end

    def _looks_around(self, node: Node) -> ConfigError:
        return _refused(
            f"{node.source} ('{node.name}') needs several steps at once, or differs by step",
            "layers that compute each step separately, and LSTMs; for convolutions over time,"
            " use stream_axis",
        )

    def _slice(self, node: Node, op: movement.StridedSlice) -> Node:
        """Return a slice of all steps, or what it takes of the last one."""
        (source, *more) = node.inputs
        axis = self.axes[source]
        begin, stride, extent = op.begin[axis], op.strides[axis], op.extent[axis]
        if more:
            raise self._looks_around(node)
        if stride < 0 and extent > 1:
            raise _refused(
                f"{node.source} ('{node.name}') runs backwards in time, like one direction of a "
                "bidirectional layer, so its first step is the last of the sequence",
                "layers that process the sequence from its first step to its last",
            )
        is_last = extent == 1 and begin == self.steps - 1
        if not is_last and (begin, stride, extent) != (0, 1, self.steps):
            raise self._looks_around(node)
        starts, counts = list(op.begin), list(op.extent)
        starts[axis], counts[axis] = 0, 1
        if not is_last:
            place = self._axis_behind(op.extent, axis, node.output.shape)
            if place is None:
                raise self._looks_around(node)
            self._shorten(node.output, place)
        new_op = replace(op, begin=tuple(starts), extent=tuple(counts))
        return replace(self._with_tensors(node), op=new_op)

    def _layer(self, node: Node) -> Node:
        """Return a recurrent layer of one step, which keeps its states."""
        op, (x, hidden, cell, *_) = node.attributes(Lstm), node.inputs
        axis = 0 if op.time_major else 1
        if self.axes.get(x) != axis:
            raise _refused(
                f"the input of '{node.name}' is not computed from the sequence step by step",
                "an input that is",
            )
        if not op.last_only:
            self._shorten(node.outputs[0], axis)
        states = [
            self._kept(node, before, after)
            for before, after in zip((hidden, cell), node.outputs[1:], strict=True)
        ]
        new_node = self._with_tensors(node)
        return replace(new_node, inputs=(new_node.inputs[0], *states, *new_node.inputs[3:]))

    def _turn(self, loop: Loop) -> Iterator[Node]:
        """Yield a turn of a loop over the steps: what goes from turn to turn is a state."""
        end, counter = self.graph.nodes[loop.stop], loop.counter
        if counter is None or loop.turns != self.steps:
            raise _refused(
                f"the loop '{end.name}' is not over the sequence", f"{self.steps} iterations"
            )
        lists = [v for v in loop.carried if _is_list(v, counter)]
        body = self.graph.nodes[loop.start + 1 : loop.stop]
        for value in loop.carried:
            is_read = any(value.turn in node.inputs for node in body)
            if value is not counter and value not in lists and is_read:
                self.new_tensors[value.turn] = self._kept(end, value.first, value.last)
        numbered = {counter.turn, *(value.turn for value in lists)}
        counts = loop.producers[counter.new.inputs[0]]
        left_out = {counts, *(value.new for value in loop.carried)}
        for node in body:
            if node in left_out:
                continue
            if self._is_item(node, counter):
                yield self._reshaped(node, node.inputs[0], node.output)
            elif numbered.isdisjoint(node.inputs):
                yield self._node(node)
            else:
                raise self._looks_around(node)
        for value in loop.carried:
            if value in lists:
                self._shorten(value.last, 0)
            if value is not counter:
                yield self._reshaped(end, value.new.inputs[value in lists], value.last)
            elif self.graph.consumers().get(value.last) or value.last in self.graph.outputs:
                raise self._looks_around(end)

    def _is_item(self, node: Node, counter: Carried) -> bool:
        if not isinstance(node.op, Gather) or node.inputs[1] is not counter.turn:
            return False
        return node.op == Gather() and self.axes.get(node.inputs[0]) == 0

    def _reshaped(self, node: Node, source: Tensor, result: Tensor) -> Node:
        old, new = (self.new_tensors.get(tensor, tensor) for tensor in (source, result))
        name = f"{result.name}_of_step"
        return replace(node, op=movement.Reshape(), inputs=(old,), outputs=(new,), name=name)

    def _kept(self, node: Node, before: Tensor, after: Tensor) -> Tensor:
        """Return what a layer begins with: what it has left in the run before."""
        if any(state.before is before for state in self.graph.states):
            return before
        if before.data is None:
            raise _refused(f"a state of '{node.name}' is computed by the model", "constants")
        remembered = Tensor(f"{after.name}_kept", after.type)
        left = Tensor(f"{after.name}_left", after.type)
        self.states.append(State(remembered, left, before.data.reshape(after.shape)))
        name = f"{node.name}_keeps_{len(self.states)}"
        self.assigns.append(replace(node, op=Assign(), inputs=(after,), outputs=(left,), name=name))
        return remembered
