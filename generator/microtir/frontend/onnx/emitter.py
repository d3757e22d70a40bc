"""Make nodes of the graph for one node of an ONNX file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from microtir.dtype import DType
from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend.onnx.file import MAX_TENSOR_BYTES
from microtir.frontend.onnx.known_distances import depends_on, known_distances
from microtir.frontend.onnx.known_spans import known_span
from microtir.frontend.onnx.reading_budget import MOST_KNOWN_BYTES, ReadingBudget
from microtir.frontend.onnx.refusals import ONNX_ADVICE
from microtir.frontend.onnx.row_counts import mixes_rows, row_count_of_results
from microtir.frontend.support import Advice, node_problems
from microtir.graph.ir import Array, Node, Quantization, SourceLocation, Tensor, TensorType
from microtir.graph.names import brief
from microtir.graph.operator import Operator
from microtir.operators import record_of
from microtir.operators.common.onnx_few_bits import FewBits
from microtir.operators.common.onnx_loops import Loop, Repeated
from microtir.operators.common.onnx_operands import MOST_RANK
from microtir.operators.common.onnx_values import Distance, RowCount, Value
from microtir.operators.definition import Trait
from microtir.operators.movement.definition import Reshape, Transpose
from microtir.rewrite.facts.rules import inferred_shapes
from microtir.rewrite.imports.movements import moves_elements
from microtir.rewrite.reference import evaluate, known_inputs
from microtir.support.unique_names import UniqueNames


@dataclass(slots=True)
class GraphParts:
    """The nodes of a graph that is being made, and the names that are taken in it."""

    nodes: list[Node] = field(default_factory=list)
    tensor_names: UniqueNames = field(default_factory=UniqueNames)
    node_names: UniqueNames = field(default_factory=UniqueNames)
    few_bits: dict[Tensor, FewBits] = field(default_factory=dict)
    places: set[Tensor] = field(default_factory=set)  # values of loops that are never below 0
    turning: set[Tensor] = field(default_factory=set)  # values of loops that turns may change
    counted: dict[Tensor, RowCount] = field(default_factory=dict)  # of which not all is in use
    names: dict[Tensor, tuple[str, ...]] = field(default_factory=dict)  # which values are places in
    budget: ReadingBudget = field(default_factory=ReadingBudget)

    def constant(self, name: str, data: Array) -> Tensor:
        """Return a constant with a name of its own; strings are places in the list of them."""
        if data.dtype == np.object_:
            texts = data.reshape(-1).tolist()
            places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
            numbers = np.array([places[text] for text in texts], np.int64)
            tensor = self.constant(name, numbers.reshape(data.shape))
            self.names[tensor] = tuple(places)
            return tensor
        values = np.ascontiguousarray(data).reshape(data.shape)
        if values is data or values.base is not None:
            values = values.copy()
        values.flags.writeable = False
        type_ = TensorType(tuple(values.shape), DType(values.dtype.name))
        return Tensor(self.tensor_names.take(name), type_, values)

    def copied(self) -> GraphParts:
        """Return the same parts, to which others can be added on trial."""
        names = self.tensor_names.copied(), self.node_names.copied()
        places, counted = set(self.places), dict(self.counted)
        return GraphParts(
            list(self.nodes), *names, dict(self.few_bits), places, set(self.turning), counted,
            dict(self.names), self.budget,
        )  # fmt: skip

    def become(self, other: GraphParts) -> None:
        """Take back what was added since the others were copied."""
        self.nodes, self.few_bits, self.places = other.nodes, other.few_bits, other.places
        self.tensor_names, self.node_names = other.tensor_names, other.node_names
        self.turning, self.counted, self.names = other.turning, other.counted, other.names


class Inside(Protocol):
    """Reads what stands inside of a node of the file, or in its place."""

    def run(self, body: object, inputs: Sequence[Value]) -> tuple[Value, ...]:
        """Return the results of a graph that an attribute holds."""
        ...

    def define(self) -> tuple[Value, ...]:
        """Return the results of the function by which ONNX defines the operator."""
        ...

    def repeat(self, emitter: NodeEmitter, loop: Loop) -> Repeated | None:
        """Return the results of a loop of the graph; None if its turns have to be written out."""
        ...


@dataclass(frozen=True, slots=True)
class NodeEmitter:
    """Makes the nodes of one node of the file, which are named after its first output.

    Args:
        parts: the graph.
        label: what the names of nodes and tensors begin with.
        source: the node of the file.
        where: the same in words, for errors.
        inside: reads graphs that the node holds, and its definition.
        advice: on types and scales, in the words of the format.
    """

    parts: GraphParts
    label: str
    source: SourceLocation
    where: str
    inside: Inside
    advice: Advice = ONNX_ADVICE

    def emit(
        self, op: Operator, inputs: Sequence[Tensor], outputs: Sequence[TensorType | None]
    ) -> tuple[Tensor, ...]:
        self.parts.budget.spend_node(self.where)
        node = self._typed(op, tuple(inputs), outputs)
        self._check_sizes(node)
        problem: MicrotirError
        for problem in node_problems(node, self.where, self.advice):
            raise problem
        is_control = record_of(op).has(Trait.CONTROL)
        known = None if is_control else known_inputs(node, {})
        if known is not None:
            return self._evaluated(node, known)
        for tensor in (*node.inputs, *node.outputs):
            if tensor.type.elements == 0:
                raise UnsupportedModelError(
                    f"{brief(tensor.name)!r} has the shape {tensor.shape}, which has no elements",
                    where=self.where,
                    legal="extents above 0",
                    fix="export the model without the part that has no elements",
                )
        count = row_count_of_results(node, self.parts.counted, self.where)
        if count is not None:
            self.parts.counted.update(dict.fromkeys(node.outputs, count))
        self.parts.nodes.append(node)
        return node.outputs

    def constant(self, data: Array) -> Tensor:
        self.parts.budget.spend_bytes(data.nbytes, self.where)
        return self.parts.constant(f"{self.label}/constant", data)

    def reserve(self, count: int) -> None:
        """Count bytes that are made on the way to constants."""
        self.parts.budget.spend_bytes(count, self.where)

    def run(self, body: object, inputs: Sequence[Value]) -> tuple[Value, ...]:
        return self.inside.run(body, inputs)

    def define(self) -> tuple[Value, ...]:
        return self.inside.define()

    def repeat(self, loop: Loop) -> Repeated | None:
        return self.inside.repeat(self, loop)

    def is_place(self, tensor: Tensor) -> bool:
        return tensor in self.parts.places

    def span(self, tensor: Tensor) -> tuple[int, int] | None:
        return known_span(tensor, self.parts.nodes)

    def distances(self, tensor: Tensor) -> tuple[Distance, ...]:
        return known_distances(tensor, self.parts.nodes)

    def changes_by_turn(self, tensor: Tensor) -> bool:
        return depends_on(tensor, self.parts.turning, self.parts.nodes)

    def names(self, tensor: Tensor) -> tuple[str, ...]:
        return self.parts.names.get(tensor, ())

    def name_values(self, tensor: Tensor, names: tuple[str, ...]) -> None:
        self.parts.names[tensor] = names

    def count_rows(self, rows: Tensor, count: RowCount) -> None:
        """Note that some rows of a result are in use, as many as data say.

        Raises:
            UnsupportedModelError: of other rows of it data say that already.
        """
        if rows in self.parts.counted:
            raise mixes_rows(rows, self.where)
        self.parts.counted[rows] = count

    def _typed(
        self, op: Operator, inputs: tuple[Tensor, ...], outputs: Sequence[TensorType | None]
    ) -> Node:
        """Return the node with outputs of the shapes that follow from the inputs."""
        name = self.parts.node_names.take(self.label)
        default = TensorType((), inputs[0].dtype)
        types = [_with_quantisation(op, inputs[0].type, type_ or default) for type_ in outputs]
        tensors = tuple(Tensor(self.label, type_) for type_ in types)
        node = Node(op, inputs, tensors, name, self.source)
        shapes = inferred_shapes(node) or tuple(type_.shape for type_ in types)
        take = self.parts.tensor_names.take
        results = tuple(
            Tensor(take(self.label), TensorType(shape, type_.dtype, type_.quantization))
            for shape, type_ in zip(shapes, types, strict=True)
        )
        return Node(op, inputs, results, name, self.source)

    def _check_sizes(self, node: Node) -> None:
        """Refuse results that no tensor holds."""
        for tensor in node.outputs:
            if len(tensor.shape) > MOST_RANK or tensor.type.bytes > MAX_TENSOR_BYTES:
                raise ModelFileError(
                    f"its result has the shape {brief(str(tensor.shape))}",
                    where=self.where,
                    legal=f"at most {MOST_RANK} dimensions and {MAX_TENSOR_BYTES} bytes",
                    fix="export the model again",
                )

    def _evaluated(self, node: Node, known: list[Array]) -> tuple[Tensor, ...]:
        size = sum(tensor.type.bytes for tensor in node.outputs)
        if size > MOST_KNOWN_BYTES:
            raise ModelFileError(
                f"it computes a constant of {size} bytes",
                where=self.where,
                legal=f"at most {MOST_KNOWN_BYTES} bytes",
                fix="let the exporter fold constants, or leave out run_decompositions()",
            )
        self.parts.budget.spend_bytes(size, self.where)
        self.parts.budget.spend_sums(node, self.where)
        if size == 0:
            # Most operators have no meaning on extents of 0, nor need one.
            arrays = tuple(np.zeros(t.shape, t.dtype.value) for t in node.outputs)
        else:
            arrays = evaluate(node, known)
        results = tuple(
            self.parts.constant(tensor.name, array)
            for tensor, array in zip(node.outputs, arrays, strict=True)
        )
        quant = _moved_quantisation(node)
        if quant is None:
            return results
        return tuple(replace(t, type=replace(t.type, quantization=quant)) for t in results)


def _with_quantisation(op: Operator, source: TensorType, result: TensorType) -> TensorType:
    """Return the type of a result; one that holds integers of an input is quantised as that."""
    is_given = result.quantization is not None or result.dtype is not source.dtype
    if is_given or not moves_elements(op):
        return result
    return replace(result, quantization=source.quantization)


def _moved_quantisation(node: Node) -> Quantization | None:
    """Return what a constant remembers of its scales when its axes are moved."""
    quant = node.inputs[0].type.quantization
    if quant is None or not isinstance(node.op, Transpose | Reshape):
        return None
    shape = node.output.shape
    if quant.axis is None:
        return quant
    if isinstance(node.op, Transpose):
        return replace(quant, axis=node.op.permutation.index(quant.axis))
    before = math.prod(node.inputs[0].shape[: quant.axis])
    places = [axis for axis, extent in enumerate(shape) if extent == len(quant.scales)]
    axes = [axis for axis in places if math.prod(shape[:axis]) == before]
    return replace(quant, axis=axes[-1]) if axes else None
