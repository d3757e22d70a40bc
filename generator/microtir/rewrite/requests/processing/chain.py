"""Nodes that follow one another from one tensor on, and what is refused of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from microtir.config.processing import Processing, ProcessingStep, StepKind
from microtir.dtype import DType
from microtir.errors import ConfigError, nearest
from microtir.graph.ir import Array, Graph, Node, Quantization, SourceLocation, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.graph.rewriting import substitute
from microtir.operators.arithmetic.definition import Add, Mul, Sub
from microtir.operators.conversion.definition import CastTo, Dequantize, Tabulated
from microtir.operators.division.definition import Div
from microtir.operators.unary.definition import Log, Sqrt
from microtir.rewrite.facts import rules
from microtir.rewrite.reference import evaluate

_ARITHMETIC: dict[StepKind, type[Operator]] = {
    StepKind.PLUS: Add,
    StepKind.MINUS: Sub,
    StepKind.OVER: Div,
    StepKind.TIMES: Mul,
}

_FUNCTIONS: dict[StepKind, Operator] = {StepKind.SQRT: Sqrt(), StepKind.LOG: Log()}

PIXELS = Quantization((1.0,), (-128,))
"""Quantisation of an int8 tensor that stands for 0 to 255."""


@dataclass(slots=True)
class Chain:
    """Nodes that are made one after the other.

    Args:
        where: the option.
        file: of the model.
        label: what names of nodes and tensors begin with.
        value: what the next node is given.
    """

    where: str
    file: str
    label: str
    value: Tensor
    nodes: list[Node] = field(default_factory=list)

    def emit(
        self, op: Operator, step: str, type_: TensorType, *more: Tensor, second: DType | None = None
    ) -> tuple[Tensor, ...]:
        """Add a node; its first output is what the next one is given.

        Args:
            op: with its attributes.
            step: that asks for it, for errors and comments.
            type_: of the output, whose shape follows from the inputs where the operator says so.
            more: inputs behind the value.
            second: type of a second output of the same shape.
        """
        types = [type_] + ([TensorType(type_.shape, second)] if second else [])
        return self.emit_several(op, step, types, *more)

    def emit_several(
        self, op: Operator, step: str, types: Sequence[TensorType], *more: Tensor
    ) -> tuple[Tensor, ...]:
        """Add a node with outputs of given types, whose shapes the operator may say."""
        name = f"{self.label}_{len(self.nodes)}"
        source = SourceLocation(self.file, -1, f"{self.where} {step}")
        inputs = (self.value, *more)
        node = Node(op, inputs, tuple(Tensor(name, t) for t in types), name, source)
        shapes = rules.inferred_shapes(node) or tuple(t.shape for t in types)
        outputs = tuple(
            Tensor(f"{name}_{op.name}{n or ''}", TensorType(shape, t.dtype, t.quantization))
            for n, (shape, t) in enumerate(zip(shapes, types, strict=True))
        )
        new_node = Node(op, inputs, outputs, name, source)
        for rule in (rules.arity, rules.output_shapes, rules.scalar_types, rules.quantization):
            for problem in rule(new_node):
                raise ConfigError(
                    f"the step '{step}' cannot be computed: {problem.what}",
                    where=self.where,
                    legal=problem.legal,
                )
        self.nodes.append(new_node)
        self.value = outputs[0]
        return outputs

    def constant(self, data: Array) -> Tensor:
        type_ = TensorType(data.shape, DType(data.dtype.name))
        return Tensor(f"{self.label}_{len(self.nodes)}_constant", type_, data)

    def as_float(self, step: str) -> None:
        """Make real numbers of what is stored as integers."""
        type_ = self.value.type
        if type_.dtype is DType.FLOAT32:
            return
        real = TensorType(type_.shape, DType.FLOAT32)
        self.emit(CastTo() if type_.quantization is None else Dequantize(), step, real)

    def elementwise(self, step: ProcessingStep) -> None:
        """Add a function of each element, or its sum, product or quotient with a number.

        There is one number, or one for each channel.
        """
        self.as_float(str(step))
        if step.kind in _FUNCTIONS:
            self.emit(_FUNCTIONS[step.kind], str(step), self.value.type)
            return
        numbers = np.array(step.numbers, np.float32)
        constant = self.constant(self._broadcast(numbers, step))
        self.emit(_ARITHMETIC[step.kind](), str(step), self.value.type, constant)

    def _broadcast(self, numbers: Array, step: ProcessingStep) -> Array:
        """Return numbers in a shape that lies along the axis of channels: the last, or the second.

        Images of ONNX have channels there, those of TFLite behind their pixels.
        """
        shape = self.value.shape
        if numbers.size == 1:
            return numbers.reshape(())
        if shape and shape[-1] == numbers.size:
            return numbers
        if len(shape) > 2 and shape[1] == numbers.size:
            return numbers.reshape(-1, *(1,) * (len(shape) - 2))
        raise ConfigError(
            f"the step '{step}' got {numbers.size} numbers for a tensor of the shape {shape}",
            where=self.where,
            legal="one number, or one for each channel",
        )

    def tabulated(self, count: int, type_: TensorType, step: str) -> None:
        """Put one table in the place of the last nodes, which are functions of one int8 value.

        Args:
            count: of nodes.
            type_: int8, of their result.
            step: for errors and comments.
        """
        earlier, replaced = self.nodes[:-count], self.nodes[-count:]
        value: Array = np.arange(-128, 128).astype(np.int8)
        for node in replaced:
            constants = [t.data for t in node.inputs[1:] if t.data is not None]
            (value,) = evaluate(_of_all(node), (value, *constants))
        self.nodes, self.value = earlier, replaced[0].inputs[0]
        if np.array_equal(value, np.arange(-128, 128)):
            self._relabel(type_)
            return
        self.emit(Tabulated(value.astype(np.int8).tobytes()), step, type_)

    def _relabel(self, type_: TensorType) -> None:
        """Let integers from the sensor on stand for other numbers; those stored are equal."""
        if not self.nodes:
            return
        quant, sensor = type_.quant, self.nodes[0].inputs[0]
        shift = PIXELS.zero_point if sensor.dtype is DType.UINT8 else 0
        shifted = Quantization(quant.scales, (quant.zero_point - shift,))
        renamed = {node.output: _as(node.output, quant) for node in self.nodes}
        renamed[sensor] = _as(sensor, shifted)
        self.nodes = [substitute(node, renamed) for node in self.nodes]
        self.value = renamed[self.value]


def _as(tensor: Tensor, quant: Quantization) -> Tensor:
    return Tensor(tensor.name, TensorType(tensor.shape, tensor.dtype, quant))


def _of_all(node: Node) -> Node:
    """Return a function of one element for 256 of them."""

    def resized(tensor: Tensor) -> Tensor:
        if tensor.is_constant:
            return tensor
        type_ = TensorType((256,), tensor.dtype, tensor.type.quantization)
        return Tensor(tensor.name, type_)

    inputs, outputs = (tuple(map(resized, side)) for side in (node.inputs, node.outputs))
    return Node(node.op, inputs, outputs, node.name, node.source)


def file_of(graph: Graph) -> str:
    """Return the name of the file that a graph is from, or that of the graph."""
    return graph.nodes[0].source.file if graph.nodes else graph.name


def each_processing(
    graph: Graph, asked: Sequence[Processing], tensors: Sequence[Tensor], where: str
) -> Iterator[tuple[Tensor, Processing]]:
    """Yield tensors of a graph with the steps that are asked for.

    Raises:
        ConfigError: no tensor is called so, or a name was left out and there are several.
    """
    names = [tensor.name for tensor in tensors]
    seen: set[str] = set()
    for processing in asked:
        name = graph.port_name(processing.name) or (names[0] if len(names) == 1 else "")
        if name not in names or name in seen:
            what = f"nothing is called '{name}'" if name else "the step names no tensor"
            raise ConfigError(
                f"'{name}' occurs twice" if name in seen else f"{what}{nearest(name, names)}",
                where=where,
                legal=", ".join(f"{known}=…" for known in names),
            )
        seen.add(name)
        yield tensors[names.index(name)], processing
