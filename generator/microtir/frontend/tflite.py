"""TFLite files into the graph IR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend.support import node_problems
from microtir.frontend.tflite_file import (
    OPTIONAL,
    FileOperator,
    ModelBytes,
    ModelFile,
    dataflow_damage,
    load,
    parse,
)
from microtir.frontend.tflite_operators import readers_with
from microtir.frontend.tflite_options import read_options
from microtir.frontend.tflite_refusals import operator_title, unknown_operator
from microtir.frontend.tflite_shapes import ShapeValues, completed, fits, is_free
from microtir.frontend.tflite_tensors import Tensors, unique_names
from microtir.graph.ir import Graph, Node, SourceLocation, Tensor
from microtir.graph.names import brief, short_name
from microtir.graph.rules import inferred_shapes
from microtir.ir_module import IRModule
from microtir.operators import OperatorRecord
from microtir.operators.common.shapes import Shape
from microtir.operators.common.tflite_operands import Operands, TfliteReader, check_arity
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.movement.definition import Reshape
from microtir.support.arguments import checked_arguments

ModelSource: TypeAlias = "str | Path | bytes | bytearray | memoryview"
"""The path of a model file, or its bytes."""


@checked_arguments
def from_tflite(
    source: ModelSource, *, name: str | None = None, operators: Sequence[OperatorRecord] = ()
) -> IRModule:
    """Read a TFLite model.

    Everything that the file leaves implicit is resolved: padding is explicit, axes are
    non-negative, masks of slices are gone, inputs that are attributes have become attributes.
    Constants are read-only views of the file's bytes, little endian.

    Args:
        source: path of the file, or its bytes.
        name: of the graph; by default the file's name without its suffix, "model" for bytes.
        operators: what custom operators of the file mean, see `microtir.custom`.

    Returns:
        A module with a graph and no configuration.

    Raises:
        ModelFileError: the file is missing, unreadable, damaged or contradicts itself.
        UnsupportedModelError: with all `problems` that `check` would return.
        UsageError: two operators have one name.
    """
    model = load(source)
    reader = _GraphReader(parse(model), operators)
    graph = reader.graph(model.stem if name is None else name)
    if reader.problems:
        raise _summary(model, reader.problems)
    return IRModule(graph=graph)


@checked_arguments
def check(source: ModelSource) -> tuple[MicrotirError, ...]:
    """Return every problem that keeps `from_tflite` from reading a model.

    Empty if there is none.
    """
    try:
        reader = _GraphReader(parse(load(source)))
        reader.graph("")
    except MicrotirError as error:
        return (error,)
    return tuple(reader.problems)


def _summary(model: ModelBytes, problems: list[MicrotirError]) -> MicrotirError:
    """Return one error for all problems; damage goes before what is merely not supported."""
    for problem in problems:
        if isinstance(problem, ModelFileError):
            return problem
    noun = "problem" if len(problems) == 1 else "problems"
    return UnsupportedModelError(
        f"the model is not supported, {len(problems)} {noun}",
        where=model.file,
        problems=problems,
    )


class _GraphReader:
    """Reads operators one by one; a problem with one does not hide the others."""

    def __init__(self, model: ModelFile, operators: Sequence[OperatorRecord] = ()) -> None:
        self._readers = readers_with(operators)
        self.problems: list[MicrotirError] = [*model.damage, *dataflow_damage(model)]
        self._model = model
        self._tensors = Tensors(model, self.problems.append)
        self._values = ShapeValues(model, self._tensors.shape_of)
        self._computable: set[Tensor] = set()

    def graph(self, name: str) -> Graph:
        """Return the graph; what it leaves out or lacks is in `problems`."""
        model = self._model
        if model.subgraphs > 1:
            self.problems.append(
                UnsupportedModelError(
                    f"the model has {model.subgraphs} subgraphs",
                    where=model.file,
                    legal="1: no loops, conditions or calls",
                    fix="convert the model without control flow and with a single signature",
                )
            )
        inputs = self._tensors.model_inputs()
        operators = _needed(model)
        labels = unique_names(
            short_name(model.tensors[op.outputs[0]].name) or f"operator_{op.index}"
            for op in operators
        )
        named = {op.index: label for op, label in zip(operators, labels, strict=True)}
        nodes = [self._next(op, named.get(op.index)) for op in model.operators]
        known = tuple(node for node in nodes if node is not None)
        outputs, copies = self._outputs(known)
        return Graph(
            name=name,
            inputs=inputs,
            outputs=outputs,
            nodes=(*known, *copies),
            source_sha256=model.sha256,
            source_bytes=model.size,
        )

    def _outputs(self, nodes: Sequence[Node]) -> tuple[tuple[Tensor, ...], list[Node]]:
        """Return the outputs, and the copies that some of them are.

        The format lists any tensor as an output, as often as it likes.  Here an output is the
        result of an operator, and memory of its own: an input, a constant, and an output that is
        listed again are copied.
        """
        labels = {node.name for node in nodes}
        outputs: list[Tensor] = []
        copies: list[Node] = []
        for index in self._model.outputs:
            tensor = self._tensors.get(index)
            if tensor is None:
                continue
            if tensor in outputs or tensor.is_constant or index in self._model.inputs:
                copied = self._tensors.copied(tensor)
                (*_, label) = unique_names((*labels, short_name(copied.name)))
                labels.add(label)
                source = SourceLocation(self._model.file, -1, "COPY")
                copies.append(Node(Reshape(), (tensor,), (copied,), label, source))
                tensor = copied
            outputs.append(tensor)
        return tuple(outputs), copies

    def _next(self, operator: FileOperator, name: str | None) -> Node | None:
        """Return node of the next operator; None if it cannot be read, and where none is needed.

        Args:
            operator: of the file, in its order.
            name: None for what no output depends on but by a shape.
        """
        if self._values.visit(operator) and operator.outputs[0] not in self._model.outputs:
            (index,) = operator.outputs
            value = self._values.get(index)
            assert value is not None
            self._tensors.know(index, value)
            return None
        return None if name is None else self._node(operator, name)

    def _node(self, operator: FileOperator, name: str) -> Node | None:
        """Return the node of an operator, or None if it cannot be read."""
        title = operator_title(operator)
        source = SourceLocation(self._model.file, operator.index, title)
        where = f"{source} ({brief(name)!r})"
        inputs = tuple(self._tensors.get(index) for index in operator.inputs)
        outputs = self._outputs_of(operator)
        node = None
        # What follows from a shape that is not known is no problem of its own.
        is_open = any(map(self._is_open, operator.inputs))
        try:
            reader = self._reader(operator, where)
            if self._all_read(operator) and not is_open:
                options = read_options(operator, reader.options, where)
                operands = Operands(
                    where,
                    reader.code,
                    options,
                    inputs,
                    outputs,
                    self._is_computable,
                    operator.custom_options,
                )
                node = self._convert(operator, reader, operands, name, source)
        except MicrotirError as error:
            self.problems.append(error)
        if node is None:
            # Operators that use the results are not to blame for them.
            self._computable.update(outputs)
        return node

    def _is_open(self, index: int) -> bool:
        """Return whether the shape of a tensor is not known."""
        return index != OPTIONAL and self._tensors.shape_of(index) is None

    def _reader(self, operator: FileOperator, where: str) -> TfliteReader:
        """Return the reader of an operator.

        Raises:
            UnsupportedModelError: there is none.
        """
        reader = self._readers.get(operator.custom_name or operator.code)
        if reader is None:
            custom = tuple(name for name in self._readers if isinstance(name, str))
            raise unknown_operator(operator, where, custom)
        return reader

    def _all_read(self, operator: FileOperator) -> bool:
        """Return whether all tensors could be read; the problem of one that could not is noted."""
        return all(
            index == OPTIONAL or self._tensors.get(index) is not None
            for index in (*operator.inputs, *operator.outputs)
        )

    def _convert(
        self,
        operator: FileOperator,
        reader: TfliteReader,
        operands: Operands,
        name: str,
        source: SourceLocation,
    ) -> Node:
        check_arity(operands, reader)
        converted = reader.read(operands)
        node = Node(converted.op, converted.inputs, operands.outputs, name, source)
        operands = self._completed(operator, operands, node, converted.shape or converted.free)
        for tensor in (*converted.inputs, *operands.outputs):
            if tensor.type.elements == 0:
                raise operands.malformed(
                    f"{brief(tensor.name)!r} has the shape {tensor.shape}, which holds nothing",
                    "extents above 0",
                )
        written = operands.output.shape
        if converted.shape not in (None, written):
            raise operands.malformed(
                f"its output has the shape {written}", f"{converted.shape}, by its inputs"
            )
        node = Node(converted.op, converted.inputs, operands.outputs, name, source)
        self.problems.extend(node_problems(node, operands.where))
        if all(self._is_computable(tensor) for tensor in converted.inputs):
            self._computable.update(operands.outputs)
        return node

    def _completed(
        self, operator: FileOperator, operands: Operands, node: Node, known: Shape | None
    ) -> Operands:
        """Return the operands with the shapes of outputs that depend on the batch.

        Args:
            operator: of the file.
            operands: its tensors, as they are stored.
            node: what becomes of it.
            known: the shape of its output, where its reader knows it.
        """
        stored = [self._model.tensors[index] for index in operator.outputs]
        if not any(map(is_free, stored)):
            return operands
        shapes: Sequence[Shape | None] = (known,) if known else inferred_shapes(node) or ()
        if not shapes and isinstance(node.op, Reshape):
            shapes = (completed(stored[0], node.inputs[0].type.elements),)
        for tensor, shape in zip(stored, shapes, strict=False):
            if is_free(tensor) and shape is not None and fits(tensor, shape):
                self._tensors.complete(tensor.index, shape)
        open_ = [tensor for tensor in stored if self._tensors.shape_of(tensor.index) is None]
        if open_:
            raise operands.unsupported(
                f"the model computes the shape {open_[0].signature} of {brief(open_[0].name)!r}",
                "a shape that follows from a batch of 1",
                "convert the model with fixed input shapes, including a batch of 1",
            )
        return replace(operands, outputs=self._outputs_of(operator))

    def _outputs_of(self, operator: FileOperator) -> tuple[Tensor, ...]:
        """Return the outputs of an operator that could be read."""
        tensors = (self._tensors.get(index) for index in operator.outputs)
        return tuple(tensor for tensor in tensors if tensor is not None)

    def _is_computable(self, tensor: Tensor) -> bool:
        return tensor.is_constant or tensor in self._computable


def _needed(model: ModelFile) -> list[FileOperator]:
    """Return operators that the outputs depend on, in file order.

    Converters compute the shape for a RESHAPE from the batch size.  The batch is fixed here, so
    those operators feed nothing; leaving them out spares support for them.
    """
    needed = set(model.outputs)
    needed_operators: list[FileOperator] = []
    for operator in reversed(model.operators):
        if needed.isdisjoint(operator.outputs):
            continue
        needed_operators.append(operator)
        shapes = operator.code == BuiltinOperator.RESHAPE
        needed.update(operator.inputs[:1] if shapes else operator.inputs)
    return needed_operators[::-1]
