"""Give each output of a model its own name and memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from microtir.errors import MicrotirError, UnsupportedModelError
from microtir.frontend.onnx.emitter import GraphParts
from microtir.graph.ir import Node, SourceLocation, Tensor
from microtir.graph.names import brief
from microtir.graph.rewriting import substitute
from microtir.operators.movement.definition import Reshape


class Port(NamedTuple):
    """An output: its name in the file, its tensor in the graph, and what the file has there."""

    name: str
    own: Tensor
    computed: Tensor


class OutputPorts:
    """Makes outputs; `reserved` are names that are theirs.

    Args:
        parts: the graph.
        file: its name, for errors.
    """

    def __init__(self, parts: GraphParts, file: str) -> None:
        self._parts = parts
        self._file = file
        self.reserved: set[str] = set()
        self.problems: list[MicrotirError] = []

    def reserve(self, names: Iterable[str]) -> None:
        """Keep the names of outputs for them: a caller finds them by these."""
        take = self._parts.tensor_names.take
        self.reserved |= {name for name in sorted(names) if take(name) == name}

    def of(
        self, results: Iterable[tuple[str, Tensor]], inputs: Sequence[Tensor]
    ) -> tuple[Port, ...]:
        """Return the outputs by their own names, each with memory of its own.

        One without elements is left out where there are others: a caller would get nothing.
        """
        ports: list[Port] = []
        empty: list[MicrotirError] = []
        renamed: dict[Tensor, Tensor] = {}
        produced = {tensor for node in self._parts.nodes for tensor in node.outputs}
        for name, tensor in results:
            if tensor.type.elements == 0:
                empty.append(empty_output(name, tensor.shape, self._file))
                continue
            own = Tensor(self._port_name(name, tensor, inputs), tensor.type)
            if tensor in produced and tensor not in renamed:
                renamed[tensor] = own
            else:
                source = SourceLocation(self._file, -1, "COPY")
                label = self._parts.node_names.take(own.name)
                output = renamed.get(tensor, tensor)
                self._parts.nodes.append(Node(Reshape(), (output,), (own,), label, source))
            ports.append(Port(name, own, tensor))
        if not ports:
            self.problems += empty
        self._parts.nodes = [substitute(node, renamed) for node in self._parts.nodes]
        return tuple(ports)

    def _port_name(self, name: str, tensor: Tensor, inputs: Sequence[Tensor]) -> str:
        """Return the name of an output: that of the file, unless an input has it."""
        is_input = tensor in inputs  # two ports of one name would be one
        if name in self.reserved or (tensor.name == name and not is_input):
            return name
        return self._parts.tensor_names.take(name)


def empty_output(name: str, shape: tuple[int, ...], file: str) -> UnsupportedModelError:
    """Return the error for an output that no caller could read."""
    return UnsupportedModelError(
        f"the output {brief(name)!r} has the shape {shape}, which has no elements",
        where=file,
        legal="extents above 0",
        fix="export the model without this output",
    )
