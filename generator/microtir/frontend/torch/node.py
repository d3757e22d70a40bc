"""Read one node of a program, with the graphs that it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from microtir.dtype import DType
from microtir.errors import ModelFileError, UnsupportedModelError
from microtir.frontend.onnx.emitter import GraphParts, NodeEmitter
from microtir.frontend.onnx.loops import repeated
from microtir.frontend.onnx.named_values import read_named
from microtir.frontend.onnx.node import (
    CANNOT_COMPUTE,
    TOO_LARGE,
    UnreadValueError,
    check_ranks,
)
from microtir.frontend.onnx.readers import READERS as ONNX_READERS
from microtir.frontend.torch.memory import (
    Memory,
    Unread,
    View,
    first_name,
    places_of,
    reader_of,
    with_part,
    written_names,
)
from microtir.frontend.torch.program import (
    Argument,
    FileGraph,
    FileNode,
    FileTensor,
    Named,
    Refused,
    names_in,
)
from microtir.frontend.torch.refusals import TORCH_ADVICE, unknown_operator
from microtir.frontend.torch.symbols import value_of
from microtir.graph.ir import SourceLocation, Tensor
from microtir.graph.names import brief
from microtir.operators.common.onnx_loops import Loop, Repeated
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.common.onnx_values import Value
from microtir.operators.common.torch_operands import (
    ONNX_VERSION,
    Alias,
    OtherType,
    Subgraph,
    TorchNode,
    TorchReader,
    TorchType,
    TorchValue,
)


@dataclass(frozen=True, slots=True)
class Scope:
    """The values of a graph's names, and what they share."""

    graph: FileGraph
    values: dict[str, TorchValue | Unread] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)


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

    def read(self, node: FileNode, scope: Scope) -> None:
        """Read a node; its results are added to the scope.

        Raises:
            ModelFileError: it contradicts itself.
            UnsupportedModelError: it is not supported.
            UnreadValueError: it, or something inside of it, follows from what could not be read.
        """
        source, label, where = self._place(node)
        reader, writes = reader_of(node.target)
        if reader is None and not node.results:
            return  # an assertion
        if reader is None:
            raise unknown_operator(node.target, where)
        for name in names_in(node.results):
            if name in scope.values:
                raise ModelFileError(
                    f"{brief(name)!r} is computed twice", where=where, fix="export the model again"
                )
        _check(node, reader, where)
        emitter = NodeEmitter(self.parts, label, source, where, _Inside(where), TORCH_ADVICE)
        for name in names_in(tuple(node.arguments.values())):
            self._refresh(name, scope, emitter)
        operands = self._operands(node, scope, emitter)
        value = self._read(reader, operands)
        if writes and reader.alias is not Alias.VIEW:
            self._write(node, value, operands, scope)
        else:
            _bind(node, value, operands, scope)
        scope.memory.note(node, reader, scope.graph, writes=writes)

    def fresh(self, name: str, scope: Scope) -> TorchValue:
        """Return the value that a name has behind all nodes.

        Raises:
            UnreadValueError: it could not be read.
            MicrotirError: it is not there, or nobody knows whether it was written to.
        """
        where = f"{self.file}: {brief(name)!r}"
        source = SourceLocation(self.file, -1, "VIEW")
        self._refresh(
            name, scope, NodeEmitter(self.parts, brief(name), source, where, _Inside(where))
        )
        return resolved(Named(name), scope, where)

    def _operands(self, node: FileNode, scope: Scope, emitter: NodeEmitter) -> TorchNode:
        """Return a node as its reader is handed it."""
        where = emitter.where
        arguments = {
            name: resolved(argument, scope, where) for name, argument in node.arguments.items()
        }
        first = OnnxNode(where, node.target, ONNX_VERSION, {}, (), 1, emitter)
        types = {
            name: type_
            for name, argument in node.arguments.items()
            if (type_ := self._type_of(argument, scope.graph, where)) is not None
        }
        results = tuple(self._type_of(result, scope.graph, where) for result in _flat(node.results))
        within = replace(self, outer=(emitter.source, emitter.label, where))
        return TorchNode(
            where, node.target, arguments, first, _run_onnx, within.run, types, results
        )

    def _refresh(self, name: str, scope: Scope, emitter: NodeEmitter) -> None:
        """Read a view again if its memory was written to since.

        Raises:
            UnsupportedModelError: nobody knows whether it was.
        """
        memory = scope.memory
        memory.check(name, emitter.where)
        if not memory.is_stale(name):
            return
        view = memory.views[name]
        self._refresh(view.parent, scope, emitter)
        if view.node is None:
            scope.values[name] = scope.values[view.parent]
        else:
            reader, _ = reader_of(view.node.target)
            assert reader is not None, "a view was read before"
            operands = self._operands(view.node, scope, emitter)
            _bind(view.node, self._read(reader, operands), operands, scope)
        memory.seen[name] = memory.writes[memory.owner(name)]

    def _write(self, node: FileNode, value: TorchValue, operands: TorchNode, scope: Scope) -> None:
        """Give the memory of the first argument of a node a new value."""
        name = first_name(node)
        old = None if name is None else scope.values.get(name)
        if name is None or not isinstance(value, Tensor) or not isinstance(old, Tensor):
            raise operands.malformed("it writes to a value that is not a tensor")
        new = operands.cast(value, old.dtype)
        if new.shape != old.shape:
            raise operands.malformed(
                f"it writes a value of shape {new.shape} to a tensor of shape {old.shape}"
            )
        written = new
        for link in scope.memory.chain(name):
            scope.values[link] = new
            view = scope.memory.views.get(link)
            if view is not None and view.node is not None:
                new = self._with_part(view, new, operands, scope)
        scope.memory.write(name)
        _bind(node, written, operands, scope)

    def _with_part(self, view: View, part: Tensor, writer: TorchNode, scope: Scope) -> Tensor:
        """Return the parent of a view with a part replaced."""
        assert view.node is not None, "a view has a node"
        whole = scope.values[view.parent]
        assert isinstance(whole, Tensor), "a view is part of a tensor"
        reader, _ = reader_of(view.node.target)
        assert reader is not None, "a view was read before"
        counted = np.arange(whole.type.elements, dtype=np.int64).reshape(whole.shape)
        first = next(iter(view.node.arguments))
        arguments = {
            name: resolved(argument, scope, writer.where)
            for name, argument in view.node.arguments.items()
        }
        counting = replace(
            writer,
            target=view.node.target,
            arguments={**arguments, first: writer.constant(counted)},
            results=(),
        )
        places = places_of(self._read(reader, counting), view, writer)
        return with_part(writer, whole, places, part)

    def run(self, graph: Subgraph, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the results of a graph that a node holds."""
        body = graph.body
        assert isinstance(body, FileGraph), "an argument holds a graph of the file"
        assert self.outer is not None, "a graph stands inside of a node"
        where = self.outer[2]
        names = [argument.name for argument in body.inputs if isinstance(argument, Named)]
        if len(names) != len(inputs) or len(body.inputs) != len(inputs):
            raise ModelFileError(
                f"a graph in it takes {len(body.inputs)} inputs, but {len(inputs)} are passed",
                where=where,
                fix="export the model again",
            )
        written = written_names(body).intersection(names)
        if written:
            raise UnsupportedModelError(
                f"a graph in it writes in place to {brief(min(written))!r}, one of its inputs",
                where=where,
                legal="graphs that compute new tensors",
                fix="compute a new tensor in the functions of torch.cond and while_loop",
            )
        scope = Scope(body, dict(zip(names, inputs, strict=True)))
        for node in body.nodes:
            self.read(node, scope)
        results = tuple(resolved(argument, scope, where) for argument in body.outputs)
        tensors = tuple(value for value in results if isinstance(value, Tensor))
        if len(tensors) < len(results):
            raise UnsupportedModelError(
                "a graph in it has results that are not tensors",
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
        if not reader.takes_complex and any(x.is_complex for x in operands.types.values()):
            raise operands.unsupported(
                "it takes complex numbers",
                "abs, real, imag, view_as_real, and transforms of these",
                "split complex numbers into their parts with torch.view_as_real",
            )
        try:
            return reader.read(operands)
        except MemoryError as error:
            raise operands.malformed(TOO_LARGE) from error
        except (ArithmeticError, ValueError) as error:
            reason = f": {brief(str(error))}" if str(error) else ""
            raise operands.malformed(f"{CANNOT_COMPUTE}{reason}") from error

    def _type_of(self, argument: Argument, graph: FileGraph, where: str) -> TorchType | None:
        """Return what the file says of a value; None if it is no tensor."""
        if not isinstance(argument, Named) or argument.name not in graph.tensors:
            return None
        return self.type_of(graph.tensors[argument.name], where)

    def type_of(self, tensor: FileTensor, where: str) -> TorchType:
        """Return the type of a tensor with numbers in the place of symbols."""
        shape = tuple(value_of(size, self.symbols, where) for size in tensor.sizes)
        return TorchType(tensor.dtype, shape, tensor.is_dense)

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


def _bind(node: FileNode, value: TorchValue, operands: TorchNode, scope: Scope) -> None:
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
        scope.values[name.name] = result


def resolved(argument: Argument, scope: Scope, where: str) -> TorchValue:
    """Return the value of an argument.

    Raises:
        ModelFileError: nothing before it computes it.
        UnreadValueError: it could not be read.
        UnsupportedModelError: it is of a kind that no reader takes.
    """
    if isinstance(argument, Named):
        if argument.name not in scope.values:
            raise ModelFileError(
                f"its input {brief(argument.name)!r} has no earlier node that computes it",
                where=where,
                fix="export the model again",
            )
        value = scope.values[argument.name]
        if isinstance(value, Unread):
            raise UnreadValueError("it depends on a part that could not be read", where=where)
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
            f"{dtype.value} of shape {shape}, as the file states",
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
