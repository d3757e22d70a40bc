"""The nodes of a PyTorch program into nodes of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from microtir.dtype import DType
from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend.onnx.emitter import GraphParts
from microtir.frontend.onnx.file import FileValue
from microtir.frontend.onnx.node import UnreadValueError
from microtir.frontend.onnx.output_ports import OutputPorts, empty_output
from microtir.frontend.onnx.shapes import InputShapes
from microtir.frontend.torch.archive import Archive
from microtir.frontend.torch.input_sizes import file_values, symbols_of_inputs
from microtir.frontend.torch.memory import Unread, reader_of, written_names
from microtir.frontend.torch.node import NodeReader, Scope, resolved
from microtir.frontend.torch.output_names import output_names
from microtir.frontend.torch.program import (
    Argument,
    FileNode,
    FileProgram,
    InputSpec,
    Named,
    OutputSpec,
    names_in,
)
from microtir.graph.ir import Array, Graph, Node, SourceLocation, State, Tensor, TensorType
from microtir.graph.names import brief
from microtir.graph.rewriting import live_nodes
from microtir.operators.common.torch_operands import TorchValue
from microtir.operators.state.definition import Assign


class GraphReader:
    """Reads nodes one by one; a problem with one does not hide the others.

    Args:
        program: what the file says.
        archive: which holds the weights.
        shapes: what the caller says of inputs.
    """

    def __init__(self, program: FileProgram, archive: Archive, shapes: InputShapes) -> None:
        self._program = program
        self._archive = archive
        self._file = archive.file
        self._shapes = shapes
        self._parts = GraphParts()
        self._ports = OutputPorts(self._parts, archive.file)
        self._scope = Scope(program.graph)
        self._states: dict[str, tuple[Tensor, Array]] = {}  # what buffers begin with
        self.symbols: Mapping[str, int] = {}  # what open sizes are
        self.problems: list[MicrotirError] = []

    def graph(self, name: str, sha256: str, size: int) -> Graph:
        """Return the graph; what it leaves out or lacks is in `problems`.

        Args:
            name: of the graph.
            sha256: of the file.
            size: of the file in bytes.
        """
        self._parts.budget.allow_for_bytes(size)
        inputs = self._user_inputs()
        names = output_names(self._program, self._file)
        self._ports.reserve(set(names) - {tensor.name for tensor in inputs})
        written = self._written()
        for spec in self._program.inputs:
            self._constant_input(spec, written)
        nodes = NodeReader(self._file, self._parts, self.symbols)
        for node in self._program.graph.nodes:
            self._visit(nodes, node)
        results = tuple(self._results(names, nodes))
        states = self._kept(nodes)
        begun = tuple(state.before for state in states)
        ports = self._ports.of(results, (*inputs, *begun))
        self.problems += self._ports.problems
        outputs = (*(port.own for port in ports), *(state.after for state in states))
        return Graph(
            name=name,
            inputs=(*inputs, *begun),
            outputs=outputs,
            nodes=tuple(live_nodes(self._parts.nodes, outputs)),
            source_sha256=sha256,
            source_bytes=size,
            states=states,
        )

    def _user_inputs(self) -> tuple[Tensor, ...]:
        """Return the inputs that a caller gives, and settle what open sizes are."""
        values = file_values(self._program, self._file)
        self._shapes.check([value for value, _ in values], self._file)
        inputs: list[Tensor] = []
        shapes: dict[str, tuple[int, ...]] = {}
        for value, _ in values:
            shape = self._shape(value)
            if shape is not None:
                shapes[value.name] = shape
        self.symbols = symbols_of_inputs(values, shapes, self._file)
        for value, _ in values:
            if value.name in shapes:
                tensor = self._input(value, shapes[value.name])
                self._scope.values[value.name] = tensor
                inputs += (tensor,) if tensor.data is None else ()
        return tuple(inputs)

    def _shape(self, value: FileValue) -> tuple[int, ...] | None:
        """Return the shape of an input; None if it is not known, which is noted."""
        try:
            return self._shapes.of(value, self._file)
        except MicrotirError as error:
            self.problems.append(error)
            self._scope.values[value.name] = Unread()
            return None

    def _input(self, value: FileValue, shape: tuple[int, ...]) -> Tensor:
        """Return an input; without elements all that a caller could hand over is known."""
        if 0 in shape:
            return self._parts.constant(value.name, np.zeros(shape, value.dtype.value))
        return Tensor(self._parts.tensor_names.take(value.name), TensorType(shape, value.dtype))

    def _written(self) -> frozenset[str]:
        """Return the names of buffers that become states; note what else the program writes to."""
        mutated = {s.title for s in self._program.outputs if s.kind == "buffer_mutation"}
        titles = {s.title: s.value.name for s in self._program.inputs if isinstance(s.value, Named)}
        written = written_names(self._program.graph) | {titles.get(t, t) for t in mutated}
        for spec in self._program.inputs:
            name = spec.value.name if isinstance(spec.value, Named) else ""
            if name in written and spec.kind != "buffer":
                self.problems.append(_is_written(spec.title or name, spec.kind, self._file))
        for output in self._program.outputs:
            if output.kind not in ("user_output", "buffer_mutation"):
                self.problems.append(_is_written(output.title, output.kind, self._file))
        return written

    def _constant_input(self, spec: InputSpec, written: frozenset[str]) -> None:
        """Give an input of the graph that no caller gives its value; what is written is a state."""
        if spec.kind == "user_input":
            return
        if spec.kind == "constant_input":
            assert not isinstance(spec.value, Named), "a constant has no name"
            self._scope.values[spec.title] = resolved(spec.value, self._scope, self._file)
            return
        assert isinstance(spec.value, Named), "an input of the graph is a name"
        try:
            stored = self._stored(spec)
            if spec.value.name in written and spec.kind == "buffer":
                name = self._parts.tensor_names.take(spec.title)
                before = Tensor(name, TensorType(stored.shape, DType(stored.dtype.name)))
                self._states[spec.title] = before, stored
                self._scope.values[spec.value.name] = before
            else:
                constant = self._parts.constant(spec.title, stored)
                self._scope.values[spec.value.name] = constant
        except MicrotirError as error:
            self.problems.append(error)
            self._scope.values[spec.value.name] = Unread()

    def _stored(self, spec: InputSpec) -> Array:
        """Return a parameter, buffer or constant.

        Raises:
            UnsupportedModelError: it is none of these.
        """
        if spec.kind not in ("parameter", "buffer", "tensor_constant"):
            raise UnsupportedModelError(
                f"its input {brief(spec.title)!r} is of the kind {brief(spec.kind)}",
                where=self._file,
                legal="parameters, buffers, constant tensors, and tensors that a caller passes",
                fix="remove Python and TorchScript objects from the model",
            )
        is_saved = spec.kind == "parameter" or (spec.kind == "buffer" and spec.is_saved)
        take = self._archive.weight if is_saved else self._archive.constant
        return take(spec.title)

    def _visit(self, nodes: NodeReader, node: FileNode) -> None:
        """Read a node; if it has a problem, note that, and give its results no values."""
        try:
            nodes.read(node, self._scope)
        except UnreadValueError:
            self._forget(node)
        except MicrotirError as error:
            if not self._is_dead(node):
                self.problems.append(error)
            self._forget(node)

    def _forget(self, node: FileNode) -> None:
        self._scope.values.update({name: Unread() for name in names_in(node.results)})

    def _is_dead(self, node: FileNode) -> bool:
        """Return whether no output of the model depends on a node, whatever it computes."""
        needed = {name for spec in self._program.outputs for name in names_in(spec.value)}
        for other in reversed(self._program.graph.nodes):
            _, writes = reader_of(other.target)
            if writes or not needed.isdisjoint(names_in(other.results)):
                needed.update(names_in(tuple(other.arguments.values())))
        return not reader_of(node.target)[1] and needed.isdisjoint(names_in(node.results))

    def _kept(self, nodes: NodeReader) -> tuple[State, ...]:
        """Return the states, each with the node that gives it its new value."""
        states = []
        changed = {s.title: s.value for s in self._program.outputs if s.kind == "buffer_mutation"}
        for spec in self._program.inputs:
            if spec.title not in self._states or spec.kind != "buffer":
                continue
            before, initial = self._states[spec.title]
            value = self._value(changed.get(spec.title, spec.value), nodes)
            if not isinstance(value, Tensor) or value.type != before.type:
                continue
            after = Tensor(self._parts.tensor_names.take(f"{before.name}_after"), before.type)
            label = self._parts.node_names.take(f"{before.name}_keeps")
            source = SourceLocation(self._file, -1, "STATE")
            self._parts.nodes.append(Node(Assign(), (value,), (after,), label, source))
            states.append(State(before, after, initial))
        return tuple(states)

    def _value(self, argument: Argument, nodes: NodeReader) -> TorchValue:
        """Return a value behind all nodes; None if it could not be read, which is noted."""
        try:
            if isinstance(argument, Named):
                return nodes.fresh(argument.name, self._scope)
            return resolved(argument, self._scope, self._file)
        except UnreadValueError:
            return None
        except MicrotirError as error:
            self.problems.append(error)
            return None

    def _results(self, names: Sequence[str], nodes: NodeReader) -> Iterator[tuple[str, Tensor]]:
        """Yield what the outputs are; note which are not there."""
        outputs = (spec for spec in self._program.outputs if spec.kind == "user_output")
        for name, spec in zip(names, outputs, strict=True):
            value = self._value(spec.value, nodes)
            if isinstance(value, Tensor) and value.type.elements == 0:
                self.problems.append(empty_output(name, value.shape, self._file))
            elif isinstance(value, Tensor):
                yield name, value
            elif value is not None:
                self.problems.append(_no_tensor(name, spec, self._file))


def _no_tensor(name: str, spec: OutputSpec, file: str) -> ModelFileError | UnsupportedModelError:
    return UnsupportedModelError(
        f"the output {brief(name)!r} is {spec.value!r}, which is not a tensor",
        where=file,
        legal="outputs that are tensors",
        fix="return only tensors from forward()",
    )


def _is_written(name: str, kind: str, file: str) -> UnsupportedModelError:
    what = "an input" if kind.startswith("user_input") else f"a {kind.partition('_')[0]}"
    return UnsupportedModelError(
        f"the program writes in place to {brief(name)!r}, {what}",
        where=file,
        legal="writes to buffers, which become states, and to tensors that the program computes",
        fix="call .clone() on it first, or keep the value in a buffer (register_buffer)",
    )
