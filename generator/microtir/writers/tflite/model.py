"""Write a graph as a TFLite file: its tensors, its operators by their records, its states."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np

from microtir.dtype import DType
from microtir.errors import UnsupportedModelError
from microtir.frontend.tflite_variables import CallOnceOptions, VarHandleOptions
from microtir.graph.ir import Graph, Node, Quantization, State, Tensor
from microtir.graph.names import brief
from microtir.operators import record_of
from microtir.operators.common.attributes import Rescaling
from microtir.operators.common.tflite_operands import TfliteReader
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.common.tflite_written import Written
from microtir.operators.definition import Trait
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.state.definition import Assign
from microtir.support.arguments import checked_arguments
from microtir.support.files import replace_file
from microtir.writers.straight import Straight
from microtir.writers.tflite.builder import OPTIONAL_INPUT, TfliteBuilder
from microtir.writers.tflite.explicit_padding import ExplicitPadding
from microtir.writers.tflite.tables import Tables
from microtir.writers.tflite.zero_states import ZeroStates, is_product_with_zeros

_SIGNATURE = "serving_default"
_MOST_BYTES = 1 << 31  # what offsets of a FlatBuffer reach

_OWN_ARITHMETIC = ("rescaling", "float32_ratio", "by_table", "ties_to_even")
"""Attributes of operators that compute integers in another way than the format's."""


@checked_arguments
def write_tflite(graph: Graph, path: str | Path, *, int4: Collection[str] = ()) -> None:
    """Write a graph as a .tflite file, which is there as a whole or not at all.

    Args:
        graph: as a reader or the quantiser gives it, before the driver has changed anything.
        path: of the file; one that is there is replaced.
        int4: names of constants that are stored in 4 bits, but for those of `int8_instead`.

    Raises:
        UnsupportedModelError: with a problem for each node that the format cannot say.
        OutputError: the file cannot be written.
    """
    replace_file(Path(path), tflite_bytes(graph, int4=int4))


@checked_arguments
def tflite_bytes(graph: Graph, *, int4: Collection[str] = ()) -> bytes:
    """Return what `write_tflite` writes: the same bytes for the same graph.

    Raises:
        UnsupportedModelError: with a problem for each node that the format cannot say.
    """
    narrow = frozenset(int4) - frozenset(int8_instead(graph, int4))
    return _Model(ExplicitPadding()(ZeroStates()(Tables()(Straight()(graph)))), narrow).bytes()


def int8_instead(graph: Graph, int4: Collection[str]) -> tuple[str, ...]:
    """Return names of constants of 4 bits that the file stores in 8.

    tflite-micro has no kernel of FULLY_CONNECTED for them with a scale for each channel.
    """
    weights = (n.inputs[1] for n in graph.nodes if isinstance(n.op, FullyConnected))
    names = (w.name for w in weights if w.type.quantization and w.type.quant.is_per_channel)
    return tuple(dict.fromkeys(name for name in names if name in int4))


@dataclass(slots=True)
class _Model:
    """A graph on its way into a file."""

    graph: Graph
    int4: frozenset[str]
    builder: TfliteBuilder = field(default_factory=lambda: TfliteBuilder(shares_buffers=True))
    indices: dict[Tensor, int] = field(default_factory=dict)
    variables: set[Tensor] = field(default_factory=set)
    problems: list[UnsupportedModelError] = field(default_factory=list)

    def bytes(self) -> bytes:
        """Return the file."""
        graph = self.graph
        size = sum(t.type.bytes for t in graph.tensors() if t.is_constant)
        if size >= _MOST_BYTES:
            raise UnsupportedModelError(
                f"the constants of the model take {size} bytes",
                where=graph.name,
                legal="less than 2 GiB",
                fix="write a smaller model",
            )
        writings = [(node, _writing(node)) for node in graph.nodes]
        self._find_variables(writings)
        resources = [state for state in graph.states if state.before not in self.variables]
        for tensor in graph.arguments:
            self._index(tensor)
        self._read(resources)
        for node, writing in writings:
            self._write(node, writing)
        if self.problems:
            raise UnsupportedModelError(
                f"layers of the model that cannot be written as TFLite: {len(self.problems)}",
                where=f"{graph.name}.tflite",
                problems=self.problems,
            )
        inputs = {t.name: self._index(t) for t in graph.arguments}
        outputs = {t.name: self._index(t) for t in graph.results}
        self.builder.signature(_SIGNATURE, inputs, outputs)
        return self.builder.build(tuple(inputs.values()), tuple(outputs.values()))

    def _find_variables(
        self, writings: Collection[tuple[Node, tuple[TfliteReader, Written] | None]]
    ) -> None:
        """Find the states that an operator of the format keeps itself: its variable tensors."""
        producers, consumers = self.graph.producers(), self.graph.consumers()
        states = {state.before: state for state in self.graph.states}
        for node, writing in writings:
            if writing is None:
                continue
            written = writing[1]
            own = node.outputs[len(node.outputs) - len(written.variables) :]
            for position, result in zip(written.variables, own, strict=True):
                before = written.inputs[position]
                zeros = None if before is None else producers.get(before)
                if before and zeros and is_product_with_zeros(zeros):
                    self.variables.add(before)
                    continue
                state = None if before is None else states.get(before)
                assign = None if state is None else producers.get(state.after)
                if (
                    state is not None
                    and assign is not None
                    and isinstance(assign.op, Assign)
                    and assign.inputs[0] is result
                    and consumers[result] == (assign,)
                    and consumers[state.before] == (node,)
                    and _begins_with_zero(state)
                ):
                    self.variables.add(state.before)
                else:
                    self._refuse(
                        node,
                        "the state of this layer is used by other layers, or does not begin at "
                        "zero",
                        "let the states begin at zero, write an .onnx file, or compile the model "
                        "with --quantise",
                    )

    def _read(self, states: Collection[State]) -> None:
        """Read the other states at the beginning of a run; a subgraph gives them first values."""
        if not states:
            return
        first = self.builder.subgraph("initialise")
        first.define([], [])
        self.builder.operator(BuiltinOperator.CALL_ONCE, [], [], CallOnceOptions(first.number))
        for state in states:
            handle = self._handle(self.builder, state)
            self.builder.operator(
                BuiltinOperator.READ_VARIABLE, [handle], [self._index(state.before)]
            )
            value = Tensor(f"{state.name}/initial", state.type, state.initial)
            self._assign(first, state, self._add(first, value))

    def _handle(self, builder: TfliteBuilder, state: State) -> int:
        handle = builder.tensor(f"{state.name}/handle", (), "resource")
        options = VarHandleOptions(shared_name=state.name)
        builder.operator(BuiltinOperator.VAR_HANDLE, [], [handle], options)
        return handle

    def _assign(self, builder: TfliteBuilder, state: State, value: int) -> None:
        handle = self._handle(builder, state)
        builder.operator(BuiltinOperator.ASSIGN_VARIABLE, [handle, value], [])

    def _write(self, node: Node, writing: tuple[TfliteReader, Written] | None) -> None:
        state = next((s for s in self.graph.states if s.after in node.outputs), None)
        if state is not None and isinstance(node.op, Assign):
            if state.before not in self.variables:
                self._assign(self.builder, state, self._index(node.inputs[0]))
            return
        if writing is None:
            self._refuse(node, _reason(node), _advice(node))
            return
        reader, written = writing
        assert isinstance(reader.code, BuiltinOperator)
        inputs = [OPTIONAL_INPUT if t is None else self._index(t) for t in written.inputs]
        count = len(node.outputs) - len(written.variables)
        outputs = [self._index(tensor) for tensor in node.outputs[:count]]
        between = [self._add(self.builder, tensor) for tensor in written.intermediates]
        self.builder.operator(reader.code, inputs, outputs, written.options, intermediates=between)

    def _refuse(self, node: Node, why: str, fix: str) -> None:
        self.problems.append(
            UnsupportedModelError(
                why,
                where=f"{node.source} ({brief(node.name)!r})",
                legal="an operator of TFLite",
                fix=fix,
            )
        )

    def _check_scales(self, tensor: Tensor, quant: Quantization) -> None:
        scales = np.array(quant.scales)
        if not np.array_equal(scales.astype(np.float32), scales):
            self.problems.append(
                UnsupportedModelError(
                    "the scales of this tensor are not float32 numbers",
                    where=f"{self.graph.name}: tensor {brief(tensor.name)!r}",
                    legal="scales of 32 bits",
                    fix="leave out the layer, or write another format",
                )
            )

    def _index(self, tensor: Tensor) -> int:
        if tensor not in self.indices:
            self.indices[tensor] = self._add(self.builder, tensor)
        return self.indices[tensor]

    def _add(self, builder: TfliteBuilder, tensor: Tensor) -> int:
        quant = tensor.type.quantization
        if quant is not None and tensor.dtype.bytes < DType.INT32.bytes:
            self._check_scales(tensor, quant)
        is_narrow = tensor.name in self.int4 and tensor.data is not None
        return builder.tensor(
            tensor.name,
            tensor.shape,
            "int4" if is_narrow else np.dtype(tensor.dtype.value),
            tensor.data,
            None if quant is None else quant.scales,
            None if quant is None else quant.zero_points,
            None if quant is None else quant.axis,
            is_variable=tensor in self.variables,
        )


def _writing(node: Node) -> tuple[TfliteReader, Written] | None:
    """Return the first reader of the node's operator that has a way back for it."""
    if _is_of_others(node):
        return None
    for reader in record_of(node.op).tflite:
        written = reader.write and reader.write(node)
        if written and isinstance(reader.code, BuiltinOperator):
            return reader, written
    return None


def _is_of_others(node: Node) -> bool:
    """Return whether integers are computed as another format does."""
    if (node.inputs and node.inputs[0].dtype.is_float) or node.inputs[0].dtype is DType.UINT8:
        return False
    default = {entry.name: entry.default for entry in fields(node.op)}
    return any(
        getattr(node.op, name) != default[name] for name in _OWN_ARITHMETIC if name in default
    )


def _reason(node: Node) -> str:
    title = record_of(node.op).name
    if _is_of_others(node):
        rescaling = getattr(node.op, "rescaling", Rescaling.FIXED_POINT)
        how = "" if rescaling is Rescaling.FIXED_POINT else f" ({rescaling.value})"
        return f"its integers are rescaled in the way of another format{how}"
    if record_of(node.op).has(Trait.CONTROL):
        return "it belongs to a branch, or to a loop that is long or that a condition may end"
    if any(reader.write for reader in record_of(node.op).tflite):
        return f"no form of {title} in TFLite has its attributes {node.op}"
    return f"TFLite has no operator for {title}"


def _advice(node: Node) -> str:
    other = "leave out the layer, or write another format"
    is_table = record_of(node.op).has(Trait.ELEMENTWISE) and len(node.activations) == 1
    return f"use int8 before and after it, so that it is a table; {other}" if is_table else other


def _begins_with_zero(state: State) -> bool:
    """Return whether a state begins as a variable tensor does: bytes with the real number 0."""
    quant = state.type.quantization
    zero = 0 if quant is None or state.type.dtype.bytes > 1 else quant.zero_point
    return bool((state.initial == zero).all())
