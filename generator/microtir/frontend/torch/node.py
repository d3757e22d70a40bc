"""Read one node of a program, with the graphs that it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from microtir.dtype import DType
from microtir.errors import ModelFileError, UnsupportedModelError
from microtir.frontend.onnx.emitter import GraphParts, NodeEmitter
from microtir.frontend.onnx.loops import repeated
from microtir.frontend.onnx.named_values import read_named
from microtir.frontend.onnx.node import CANNOT_COMPUTE, UnreadValueError, check_ranks
from microtir.frontend.onnx.readers import READERS as ONNX_READERS
from microtir.frontend.torch.program import (
    Argument,
    FileGraph,
    FileNode,
    FileTensor,
    Named,
    Refused,
)
from microtir.frontend.torch.readers import READERS
from microtir.frontend.torch.refusals import TORCH_ADVICE, unknown_operator
from microtir.frontend.torch.symbols import value_of
from microtir.graph.ir import SourceLocation, Tensor
from microtir.graph.names import brief
from microtir.operators.common.onnx_loops import Loop, Repeated
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.common.onnx_values import Value
from microtir.operators.common.torch_operands import (
    ONNX_VERSION,
    OtherType,
    Subgraph,
    TorchNode,
    TorchReader,
    TorchType,
    TorchValue,
)


@dataclass(frozen=True, slots=True)
class Unread:
    """The value of a name that could not be read, which is a problem of another node."""


Scope: TypeAlias = "MutableMapping[str, TorchValue | Unread]"
"""Values by the names of the graph."""

Body: TypeAlias = Callable[[Sequence[Value]], tuple[Value, ...]]
"""A graph inside of a node, as readers of ONNX run it: values in, values out."""


@dataclass(frozen=True, slots=True)
class NodeReader:
    """Reads nodes of a graph one by one, or those inside of one of them.

    Args:
        file: its name, for errors.
        parts: the graph that is being made.
        symbols: what open sizes are.
        outer: the node of the graph of the file that all this is read for.
    """

    file: str
    parts: GraphParts
    symbols: Mapping[str, int]
    outer: tuple[SourceLocation, str, str] | None = None

    def read(self, node: FileNode, graph: FileGraph, scope: Scope) -> None:
        """Read a node; its results are added to the scope.

        Raises:
            ModelFileError: it contradicts itself.
            UnsupportedModelError: it is not supported.
            UnreadValueError: it, or something inside of it, follows from what could not be read.
        """
        source, label, where = self._place(node)
        reader = READERS.get(node.target)
        if reader is None:
            raise unknown_operator(node.target, where)
        _check(node, reader, where)
        arguments = {
            name: resolved(argument, scope, where) for name, argument in node.arguments.items()
        }
        within = replace(self, outer=(source, label, where))
        inside = _Inside(where)
        emitter = NodeEmitter(self.parts, label, source, where, inside, TORCH_ADVICE)
        first = OnnxNode(where, node.target, ONNX_VERSION, {}, (), 1, emitter)
        results = tuple(self._type_of(result, graph, where) for result in _flat(node.results))
        types = {
            name: type_
            for name, argument in node.arguments.items()
            if (type_ := self._type_of(argument, graph, where)) is not None
        }
        operands = TorchNode(
            where, node.target, arguments, first, _run_onnx, within.run, types, results
        )
        value = self._read(reader, operands)
        self._bind(node, value, operands, scope)

    def run(self, graph: Subgraph, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the results of a graph that a node holds."""
        body = graph.body
        assert isinstance(body, FileGraph), "an argument holds a graph of the file"
        assert self.outer is not None, "a graph stands inside of a node"
        where = self.outer[2]
        names = [argument.name for argument in body.inputs if isinstance(argument, Named)]
        if len(names) != len(inputs) or len(body.inputs) != len(inputs):
            raise ModelFileError(
                f"a graph in it takes {len(body.inputs)} inputs, and is given {len(inputs)}",
                where=where,
                fix="export the model again",
            )
        scope: Scope = dict(zip(names, inputs, strict=True))
        for node in body.nodes:
            self.read(node, body, scope)
        results = tuple(resolved(argument, scope, where) for argument in body.outputs)
        tensors = tuple(value for value in results if isinstance(value, Tensor))
        if len(tensors) < len(results):
            raise UnsupportedModelError(
                "a graph in it has results that are no tensors",
                where=where,
                legal="tensors",
                fix="let both functions of torch.cond, and the body of while_loop, return tensors",
            )
        return tensors

    def _read(self, reader: TorchReader, operands: TorchNode) -> TorchValue:
        """Return what a reader makes of a node.

        Raises:
            ModelFileError: numbers of the file lead its arithmetic out of all bounds.
        """
        self.parts.budget.allow_for_node()
        try:
            return reader.read(operands)
        except (ArithmeticError, MemoryError, ValueError) as error:
            reason = f": {brief(str(error))}" if str(error) else ""
            raise operands.malformed(f"{CANNOT_COMPUTE}{reason}") from error

    def _bind(self, node: FileNode, value: TorchValue, operands: TorchNode, scope: Scope) -> None:
        """Give the names of results their values."""
        names = _flat(node.results)
        values = value if isinstance(value, tuple) else (value,)
        if len(values) < len(names):
            raise operands.malformed(f"it has {len(names)} results", f"{len(values)}")
        for name, result, type_ in zip(names, values, operands.results, strict=False):
            if not isinstance(name, Named):
                continue
            if isinstance(result, Tensor) and type_ is not None:
                _check_result(result, type_, operands)
            scope[name.name] = result

    def _type_of(self, argument: Argument, graph: FileGraph, where: str) -> TorchType | None:
        """Return what the file says of a value; None if it is no tensor."""
        if not isinstance(argument, Named) or argument.name not in graph.tensors:
            return None
        return self.type_of(graph.tensors[argument.name], where)

    def type_of(self, tensor: FileTensor, where: str) -> TorchType:
        """Return the type of a tensor with numbers in the place of symbols."""
        shape = tuple(value_of(size, self.symbols, where) for size in tensor.sizes)
        return TorchType(tensor.dtype, shape)

    def _place(self, node: FileNode) -> tuple[SourceLocation, str, str]:
        """Return where a node stands, what names in the graph begin with, and where in words."""
        names = [result.name for result in _flat(node.results) if isinstance(result, Named)]
        label = brief(names[0]) if names else node.target
        line = f", {node.line}" if node.line else ""
        if self.outer is None:
            source = SourceLocation(self.file, node.index, brief(node.target))
            module = f" of {brief(node.module)!r}" if node.module else ""
            return source, label, f"{source} ({label!r}{module}{line})"
        source, outer, where = self.outer
        return source, f"{outer}/{label}", f"{where}, in it {brief(node.target)} ({label!r}{line})"


def _run_onnx(node: OnnxNode) -> Value | tuple[Value, ...]:
    """Run the reader of ONNX that is registered for a node."""
    reader = ONNX_READERS[node.domain, node.operator]
    assert set(node.attributes) <= set(reader.attributes), "a reader knows its attributes"
    check_ranks(node, reader.ranks)
    return read_named(node, reader)


def resolved(argument: Argument, scope: Scope, where: str) -> TorchValue:
    """Return the value of an argument.

    Raises:
        ModelFileError: nothing before it computes it.
        UnreadValueError: it could not be read.
        UnsupportedModelError: it is of a kind that no reader takes.
    """
    if isinstance(argument, Named):
        if argument.name not in scope:
            raise ModelFileError(
                f"its input {brief(argument.name)!r} is computed nowhere before it",
                where=where,
                fix="export the model again",
            )
        value = scope[argument.name]
        if isinstance(value, Unread):
            raise UnreadValueError("it follows from what could not be read", where=where)
        return value
    if isinstance(argument, Refused):
        raise UnsupportedModelError(
            f"it has an argument of the kind {brief(argument.kind)}",
            where=where,
            legal="tensors, numbers, texts, scalar types, graphs, and lists of them",
            fix="write the layer with plain tensors before the model is exported",
        )
    if isinstance(argument, tuple):
        return tuple(resolved(item, scope, where) for item in argument)
    return Subgraph(argument) if isinstance(argument, FileGraph) else argument


def _flat(results: Sequence[Argument]) -> tuple[Argument, ...]:
    """Return the results of a node one by one, also those of a list."""
    flat: list[Argument] = []
    for result in results:
        flat += result if isinstance(result, tuple) else (result,)
    return tuple(flat)


def _check(node: FileNode, reader: TorchReader, where: str) -> None:
    """Refuse arguments that a reader does not look at."""
    for name, argument in node.arguments.items():
        if argument is not None and name not in reader.arguments:
            raise UnsupportedModelError(
                f"it has the argument '{brief(name)}'",
                where=where,
                legal=", ".join(reader.arguments) or "none",
                fix="export the model with PyTorch 2.13 or an earlier one",
            )


def _check_result(result: Tensor, type_: TorchType, node: TorchNode) -> None:
    """Check that a result is what the file says.

    Raises:
        ModelFileError: the file contradicts itself.
    """
    shape = (*type_.shape, 2) if type_.is_complex else type_.shape
    dtype = DType.FLOAT32 if isinstance(type_.dtype, OtherType) else type_.dtype
    if (result.shape, result.dtype) != (shape, dtype):
        raise node.malformed(
            f"its result is {result.dtype.value} of shape {result.shape}",
            f"{dtype.value} of shape {shape}, which the file says",
        )


@dataclass(frozen=True, slots=True)
class _Inside:
    """Runs what readers of ONNX take as graphs of a node."""

    where: str

    def run(self, body: object, inputs: Sequence[Value]) -> tuple[Value, ...]:
        """Return the results of a graph that a reader hands over as a function."""
        assert callable(body), "readers hand graphs over as functions"
        results: tuple[Value, ...] = body(inputs)
        return results

    def define(self) -> tuple[Value, ...]:
        """Refuse an operator that ONNX defines by a function: that needs a file of its own."""
        raise UnsupportedModelError(
            "it is an operator that is read from ONNX files only",
            where=self.where,
            legal="the operators that `microtir operators --torch` lists",
            fix="run program.run_decompositions() before the program is saved",
        )

    def repeat(self, emitter: NodeEmitter, loop: Loop) -> Repeated | None:
        """Return the results of a loop of the graph; None if its turns have to be written out."""
        return repeated(emitter, loop)
