"""The nodes of an ONNX file into nodes of the graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend.onnx.emitter import GraphParts
from microtir.frontend.onnx.file import FileNode, FileValue, OnnxFile, names_taken
from microtir.frontend.onnx.named_values import named_result
from microtir.frontend.onnx.node import NodeReader, UnreadValueError
from microtir.frontend.onnx.output_ports import OutputPorts
from microtir.frontend.onnx.shapes import InputShapes
from microtir.graph.ir import (
    CountedResult,
    Graph,
    NamedResult,
    Tensor,
    TensorType,
)
from microtir.graph.names import brief
from microtir.graph.rewriting import live_nodes
from microtir.operators.common.onnx_values import TensorSequence, Value


class GraphReader:
    """Reads nodes one by one; a problem with one does not hide the others.

    Args:
        file: what the file says.
        shapes: what the caller says of its inputs.
    """

    def __init__(self, file: OnnxFile, shapes: InputShapes) -> None:
        self._file = file
        self._shapes = shapes
        self._parts = GraphParts()
        self._ports = OutputPorts(self._parts, file.file)
        self._values: dict[str, Value | None] = {}  # None: it could not be read
        self._nodes = NodeReader(file, self._parts)
        self._counted: list[CountedResult] = []
        self._named: list[NamedResult] = []
        self._count_names: dict[Tensor, str] = {}  # of outputs that say how many rows there are
        self.problems: list[MicrotirError] = []

    def graph(self, name: str) -> Graph:
        """Return the graph; what it leaves out or lacks is in `problems`."""
        inputs = self._inputs()
        names = {value.name for value in self._file.graph.outputs}
        self._ports.reserve(names - {tensor.name for tensor in inputs})
        self._parts.budget.allow_for_bytes(self._file.size)
        for title, data in self._file.graph.constants.items():
            self._parts.budget.allow_for_bytes(data.nbytes)
            constant = self._parts.constant(title, data)
            self._values[title] = constant
            if title in self._file.graph.few_bits:
                self._parts.few_bits[constant] = self._file.graph.few_bits[title]
        for node in self._file.graph.nodes:
            self._visit(node)
        outputs = self._outputs(inputs)
        return Graph(
            name=name,
            inputs=inputs,
            outputs=outputs,
            nodes=tuple(live_nodes(self._parts.nodes, outputs)),
            source_sha256=self._file.sha256,
            source_bytes=self._file.size,
            counted=tuple(self._counted),
            named=tuple(self._named),
        )

    def _inputs(self) -> tuple[Tensor, ...]:
        inputs: list[Tensor] = []
        values = self._file.graph.inputs
        declared = [self._shapes.tensors_of(value) for value in values]
        self._shapes.check([tensor for tensors in declared for tensor in tensors], self._file.file)
        for value, tensors in zip(values, declared, strict=True):
            try:
                own_inputs = tuple(map(self._input, tensors))
            except MicrotirError as error:
                self.problems.append(error)
                self._values[value.name] = None
                continue
            self._values[value.name] = (
                TensorSequence(own_inputs) if value.is_sequence else own_inputs[0]
            )
            inputs += (tensor for tensor in own_inputs if tensor.data is None)
        return tuple(inputs)

    def _input(self, value: FileValue) -> Tensor:
        """Return an input; without elements all that a caller could hand over is known."""
        shape = self._shapes.of(value, self._file.file)
        if 0 in shape:
            tensor = self._parts.constant(value.name, np.zeros(shape, value.dtype.value))
        else:
            name = self._parts.tensor_names.take(value.name)
            tensor = Tensor(name, TensorType(shape, value.dtype))
        if value.few_bits is not None:
            self._parts.few_bits[tensor] = value.few_bits
        return tensor

    def _visit(self, node: FileNode) -> None:
        """Read a node; if it has a problem, note that, and give its outputs no values."""
        try:
            self._nodes.read(node, self._values)
        except UnreadValueError:
            self._values.update(dict.fromkeys(node.outputs))
        except MicrotirError as error:
            if not self._is_dead(node):
                self.problems.append(error)
            self._values.update(dict.fromkeys(node.outputs))

    def _is_dead(self, node: FileNode) -> bool:
        """Return whether no output of the model depends on a node, whatever it computes."""
        graph = self._file.graph
        needed = {value.name for value in graph.outputs}
        if not needed:
            return False
        for other in reversed(graph.nodes):
            if not needed.isdisjoint(other.outputs):
                needed.update(names_taken(other))
        return needed.isdisjoint(node.outputs)

    def _outputs(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the outputs by their own names; note which of them are counted or names."""
        ports = self._ports.of(self._with_counts(self._results()), inputs)
        self.problems += self._ports.problems
        for name, own, tensor in ports:
            self._name_values(own, name, tensor)
            known = self._parts.counted.get(tensor)
            if known is not None:
                title = self._count_names[known.count]
                self._counted.append(CountedResult(own.name, known.axis, title))
        return tuple(port.own for port in ports)

    def _name_values(self, own: Tensor, name: str, file_tensor: Tensor) -> None:
        """Note what the values of an output are places in, if the file has strings there."""
        is_text = any(v.name == name and v.is_text for v in self._file.graph.outputs)
        try:
            self._named += named_result(
                own, file_tensor, self._parts, is_text=is_text, file=self._file.file
            )
        except UnsupportedModelError as error:
            self.problems.append(error)

    def _with_counts(self, results: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
        """Yield outputs; behind the first one of which data say the rows, how many there are."""
        for name, tensor in results:
            known = self._parts.counted.get(tensor)
            if known is None or known.count in self._count_names:
                yield name, tensor
                continue
            own = self._parts.tensor_names.take(f"{name}_count")
            self._count_names[known.count] = own
            self._ports.reserved.add(own)
            yield name, tensor
            yield own, known.count

    def _results(self) -> Iterator[tuple[str, Tensor]]:
        """Yield what the outputs are, those of a sequence one by one; note which are not there."""
        for value in self._file.graph.outputs:
            tensor = self._values.get(value.name)
            if value.name not in self._values:
                self.problems.append(_no_output(value.name, self._file.file))
            elif isinstance(tensor, TensorSequence):
                if not tensor.items:
                    self.problems.append(_empty_sequence(value.name, self._file.file))
                yield from ((f"{value.name}.{n}", item) for n, item in enumerate(tensor.items))
            elif tensor is not None:
                yield value.name, tensor


def _no_output(name: str, file: str) -> ModelFileError:
    return ModelFileError(
        f"no node computes the output {brief(name)!r}", where=file, fix="export the model again"
    )


def _empty_sequence(name: str, file: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"the output {brief(name)!r} is a sequence without tensors",
        where=file,
        legal="sequences of one tensor or more",
        fix="export the model without this output",
    )
