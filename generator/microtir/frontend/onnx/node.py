"""Read one node of an ONNX file, with the graphs that it holds and the functions it stands for."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from microtir.errors import ModelFileError, UnsupportedModelError
from microtir.frontend.onnx.emitter import GraphParts, NodeEmitter
from microtir.frontend.onnx.few_bits import few_bits_of_result
from microtir.frontend.onnx.file import FileBody, FileNode, FileReader, OnnxFile
from microtir.frontend.onnx.functions import definition_of
from microtir.frontend.onnx.loops import repeated
from microtir.frontend.onnx.named_values import read_named
from microtir.frontend.onnx.operand_types import check_types
from microtir.frontend.onnx.readers import READERS
from microtir.frontend.onnx.refusals import unknown_attributes, unknown_operator
from microtir.frontend.onnx.row_counts import mixes_rows
from microtir.graph.ir import SourceLocation, Tensor
from microtir.graph.names import brief
from microtir.operators.common.onnx_loops import Loop, Repeated
from microtir.operators.common.onnx_operands import OnnxNode, OnnxReader
from microtir.operators.common.onnx_values import TensorSequence, Value, tensors_of


class UnreadValueError(ModelFileError):
    """A node needs a value that could not be read, which is a problem of another node."""


Scope: TypeAlias = "MutableMapping[str, Value | None]"
"""Values by name; None: it could not be read."""

CANNOT_COMPUTE = "its attributes and constants are not usable numbers"
"""Text of the error where numbers fail in a computation that no reader has checked them for."""

TOO_LARGE = "its numbers ask for more memory than there is"
"""Text of the error where a reader has not checked how large an array of theirs is."""

MOST_DEPTH = 16
"""Deepest nesting of graphs inside of nodes, and of functions inside of functions."""

MOST_INNER_NODES = 1 << 15
"""Most nodes of loops, which are read once a turn, and of functions."""


@dataclass(slots=True)
class _Budget:
    """The number of nodes inside of others that may still be read."""

    nodes: int = MOST_INNER_NODES

    def spend(self, where: str) -> None:
        self.nodes -= 1
        if self.nodes < 0:
            raise UnsupportedModelError(
                f"its loops and functions have more than {MOST_INNER_NODES} nodes when loops are "
                f"unrolled and calls inlined",
                where=where,
                legal="loops of few iterations",
                fix="export the model with a shorter sequence, or its step without the loop",
            )


@dataclass(frozen=True, slots=True)
class NodeReader:
    """Reads nodes of the file one by one, or those inside of one of them.

    Args:
        file: what the file says.
        parts: the graph that is being made.
        opsets: versions by domain; inside of functions they are the functions' own.
        outer: the node of the graph of the file that all this is read for.
        depth: of nodes inside of nodes.
        budget: shared by all.
    """

    file: OnnxFile
    parts: GraphParts
    opsets: Mapping[str, int] | None = None
    outer: tuple[SourceLocation, str, str] | None = None
    depth: int = 0
    budget: _Budget = field(default_factory=_Budget)

    def read(self, node: FileNode, scope: Scope) -> None:
        """Read a node; what follows from a value that could not be read is no problem.

        Raises:
            ModelFileError: it contradicts itself.
            UnsupportedModelError: it is not supported.
            UnreadValueError: inside of it something depends on an operator that could not be read.
        """
        title = node.operator if not node.domain else f"{node.domain}.{node.operator}"
        outputs = [name for name in node.outputs if name]
        source, label, where = self._place(node, title, outputs)
        inputs = _given(node, scope, where)
        reader = READERS.get((node.domain, node.operator))
        opsets = self.file.opsets if self.opsets is None else self.opsets
        version = opsets.get(node.domain, 1)
        if reader is None or version < reader.since:
            raise unknown_operator(node, version, reader, where)
        _check(node, reader, where)
        if inputs is None:
            scope.update(dict.fromkeys(outputs))
            return
        few_bits = few_bits_of_result(node, inputs, self.parts.few_bits, where)
        within = replace(self, outer=(source, label, where), depth=self.depth + 1)
        inside = _Inside(within, node, opsets, inputs, scope, where)
        emitter = NodeEmitter(self.parts, label, source, where, inside)
        narrow = {
            place: self.parts.few_bits[tensor]
            for place, value in enumerate(inputs)
            for tensor in tensors_of(value)
            if tensor in self.parts.few_bits
        }
        operands = OnnxNode(
            where, title, version, node.attributes, inputs, len(node.outputs), emitter, narrow
        )
        check_types(node, version, inputs, narrow, where)
        check_ranks(operands, reader.ranks)
        values = self._read(reader, operands)
        results = values if isinstance(values, tuple) else (values,)
        named = [x for name, x in zip(node.outputs, results, strict=False) if name]
        self._check_row_counts(inputs, named, where)
        for name, value in zip(node.outputs, results, strict=False):
            if name:
                scope[name] = value
                if few_bits is not None:
                    self.parts.few_bits.update(dict.fromkeys(tensors_of(value), few_bits))

    def _read(self, reader: OnnxReader, operands: OnnxNode) -> Value | tuple[Value, ...]:
        """Return what a reader makes of a node.

        Raises:
            ModelFileError: numbers of the file lead its arithmetic out of all bounds.
        """
        self.parts.budget.allow_for_node()
        try:
            return read_named(operands, reader)
        except MemoryError as error:
            raise operands.malformed(TOO_LARGE) from error
        except (ArithmeticError, ValueError) as error:
            reason = f": {brief(str(error))}" if str(error) else ""
            raise operands.malformed(f"{CANNOT_COMPUTE}{reason}") from error

    def _check_row_counts(
        self, inputs: Sequence[Value | None], results: Sequence[Value], where: str
    ) -> None:
        """Refuse what follows from the extents of a value of which not all is in use."""
        counted = [x for x in inputs if isinstance(x, Tensor) and x in self.parts.counted]
        if counted and any(isinstance(y, Tensor) and y.is_constant for y in results):
            raise mixes_rows(counted[0], where)

    def body(self, body: FileBody, scope: Scope) -> tuple[Value, ...]:
        """Return the results of nodes that stand inside of one.

        Args:
            body: the nodes.
            scope: what they are given, to which their results are added.
        """
        assert self.outer is not None
        where = self.outer[2]
        for title, data in body.constants.items():
            scope[title] = self.parts.constant(title, data)
        for node in body.nodes:
            self.budget.spend(where)
            self.read(node, scope)
        results = []
        for name in body.outputs:
            value = scope.get(name)
            if value is not None:
                results.append(value)
            elif name in scope:
                raise UnreadValueError(
                    f"in it {brief(name)!r} depends on an operator that could not be read",
                    where=where,
                )
            else:
                raise ModelFileError(f"none of its nodes computes {brief(name)!r}", where=where,
                                     fix="export the model again")  # fmt: skip
        return tuple(results)

    def _place(
        self, node: FileNode, title: str, outputs: Sequence[str]
    ) -> tuple[SourceLocation, str, str]:
        """Return where a node stands, what names in the graph begin with, and where in words."""
        label = brief(outputs[0] if outputs else node.name) or title
        if self.outer is None:
            source = SourceLocation(self.file.file, node.index, title)
            return source, label, f"{source} ({label!r})"
        source, outer, where = self.outer
        return source, f"{outer}/{label}", f"{where}, in it {title} ({label!r})"


@dataclass(frozen=True, slots=True)
class _Inside:
    """Reads what stands inside of one node, or in its place."""

    reader: NodeReader
    node: FileNode
    opsets: Mapping[str, int]
    inputs: tuple[Value | None, ...]
    scope: Scope
    where: str

    def run(self, body: object, inputs: Sequence[Value]) -> tuple[Value, ...]:
        """Return the results of a graph that an attribute holds; it sees what is around it."""
        if not isinstance(body, FileBody) or len(body.inputs) != len(inputs):
            raise ModelFileError(
                f"the graph in it does not take {len(inputs)} inputs",
                where=self.where,
                fix="export the model again",
            )
        self._check_depth()
        scope = {**self.scope, **dict(zip(body.inputs, inputs, strict=True))}
        return self.reader.body(body, scope)

    def define(self) -> tuple[Value, ...]:
        self._check_depth()
        reader = FileReader(self.reader.file.file)
        tensors = [x for x in self.inputs if not isinstance(x, TensorSequence)]
        is_of_tensors = len(tensors) == len(self.inputs)
        definition = (
            definition_of(self.node, self.opsets, tensors, reader) if is_of_tensors else None
        )
        if definition is None:
            raise unknown_operator(self.node, 0, None, self.where)
        body, opsets = definition
        if len(self.inputs) > len(body.inputs):
            raise ModelFileError(
                f"it has {len(self.inputs)} inputs",
                where=self.where,
                legal=f"at most {len(body.inputs)}",
                fix="export the model again",
            )
        operands = (*self.inputs, *(None,) * (len(body.inputs) - len(self.inputs)))
        # An input that is left out has no name inside.
        left_out = {
            name for name, tensor in zip(body.inputs, operands, strict=True) if tensor is None
        }
        scope: Scope = {n: t for n, t in zip(body.inputs, operands, strict=True) if t is not None}
        nodes = tuple(_without(node, left_out) for node in body.nodes)
        pairs = zip(self.node.outputs, body.outputs, strict=False)
        wanted = tuple(inner for outer, inner in pairs if outer)
        needed = replace(body, nodes=_needed(nodes, wanted), outputs=wanted)
        results = iter(replace(self.reader, opsets=opsets).body(needed, scope))
        nothing = self.reader.parts.constant("", np.zeros(0, np.float32))
        return tuple(next(results) if name else nothing for name in self.node.outputs)

    def repeat(self, emitter: NodeEmitter, loop: Loop) -> Repeated | None:
        return repeated(emitter, loop)

    def _check_depth(self) -> None:
        if self.reader.depth > MOST_DEPTH:
            raise ModelFileError(
                f"its graphs are nested {MOST_DEPTH} deep", where=self.where,
                fix="export the model again",
            )  # fmt: skip


def _without(node: FileNode, names: set[str]) -> FileNode:
    return replace(node, inputs=tuple("" if name in names else name for name in node.inputs))


def _needed(nodes: Sequence[FileNode], outputs: Sequence[str]) -> tuple[FileNode, ...]:
    """Return the nodes of a function that some of its outputs depend on.

    Graphs inside of nodes may use any value: a function that has such is kept whole.
    """
    if any(isinstance(v, FileBody) for node in nodes for v in node.attributes.values()):
        return tuple(nodes)
    needed, remaining = set(outputs), []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.outputs):
            remaining.append(node)
            needed.update(node.inputs)
    return tuple(remaining[::-1])


def _given(node: FileNode, scope: Scope, where: str) -> tuple[Value | None, ...] | None:
    """Return the inputs; None if one of them could not be read."""
    for name in node.inputs:
        if name and name not in scope:
            raise ModelFileError(
                f"no earlier node computes its input {brief(name)!r}",
                where=where,
                fix="export the model again",
            )
    if any(name and scope[name] is None for name in node.inputs):
        return None
    return tuple(scope[name] if name else None for name in node.inputs)


def _check(node: FileNode, reader: OnnxReader, where: str) -> None:
    """Check numbers of inputs and outputs, and names of attributes."""
    low, high = reader.inputs
    if not low <= len(node.inputs) <= high or len(node.outputs) > reader.outputs:
        raise ModelFileError(
            f"it has {len(node.inputs)} inputs and {len(node.outputs)} outputs",
            where=where,
            legal=f"{low} to {high} inputs, 1 to {reader.outputs} outputs",
            fix="export the model again",
        )
    unknown = set(node.attributes) - set(reader.attributes)
    if unknown:
        raise unknown_attributes(sorted(unknown), reader, where)


def check_ranks(node: OnnxNode, ranks: Sequence[int]) -> None:
    """Check that inputs have the dimensions that a reader relies on."""
    for place, (value, least) in enumerate(zip(node.inputs, ranks, strict=False)):
        if isinstance(value, Tensor) and len(value.shape) < least:
            raise node.malformed(
                f"its input {place} {brief(value.name)!r} has the shape {value.shape}",
                f"{least} dimensions or more",
            )
