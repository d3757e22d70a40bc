"""The layers of a Keras model into nodes of the graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from microtir.dtype import DType
from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend.keras.archive import KerasArchive
from microtir.frontend.keras.config import (
    INPUT,
    Argument,
    LayerRecord,
    ModelRecord,
    Result,
    parse_layer,
)
from microtir.frontend.keras.hdf5 import SAVE_AGAIN
from microtir.frontend.keras.inputs import input_values
from microtir.frontend.keras.layer import VERSION, KerasLayer, Operand, tensors_of
from microtir.frontend.keras.layers.operations import KERAS_OPERATIONS
from microtir.frontend.keras.readers import KERAS_READERS
from microtir.frontend.keras.refusals import check_fields, check_policy, unknown_layer
from microtir.frontend.keras.weights import Weights, weights_of
from microtir.frontend.onnx.emitter import GraphParts, NodeEmitter
from microtir.frontend.onnx.file import FileValue
from microtir.frontend.onnx.loops import repeated
from microtir.frontend.onnx.node import TOO_LARGE, UnreadValueError
from microtir.frontend.onnx.output_ports import OutputPorts
from microtir.frontend.onnx.shapes import InputShapes
from microtir.graph.ir import Array, Graph, Node, SourceLocation, State, Tensor, TensorType
from microtir.graph.names import brief
from microtir.graph.rewriting import live_nodes
from microtir.operators.common.onnx_loops import Loop, Repeated
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.common.onnx_values import Value
from microtir.operators.movement.definition import Reshape
from microtir.support.unique_names import UniqueNames

_MOST_DEPTH = 16  # of models in models
_MOST_CALLS = 1 << 14


@dataclass(frozen=True, slots=True)
class _Inside:
    """Reads what operators of ONNX have inside: loops that readers describe."""

    where: str

    def run(self, body: object, inputs: Sequence[Value]) -> tuple[Value, ...]:
        """Refuse: no layer is read as an operator that holds a graph."""
        raise AssertionError(self.where)

    def define(self) -> tuple[Value, ...]:
        """Refuse: no layer is read as an operator that is a function of others."""
        raise AssertionError(self.where)

    def repeat(self, emitter: NodeEmitter, loop: Loop) -> Repeated | None:
        """Return the results of a loop of the graph; None if its turns have to be written out."""
        return repeated(emitter, loop)


@dataclass(slots=True)
class KerasGraph:
    """Reads layers one by one; a problem with one does not hide the others.

    Args:
        archive: what the file says.
        shapes: what the caller says of its inputs.
    """

    archive: KerasArchive
    shapes: InputShapes
    problems: list[MicrotirError] = field(default_factory=list)
    _parts: GraphParts = field(default_factory=GraphParts)
    _masks: dict[Tensor, Tensor] = field(default_factory=dict)
    _states: dict[Tensor, tuple[Array, Tensor]] = field(default_factory=dict)
    _place: tuple[str, ...] = ()  # names of the models around what is read
    _index: int = 0
    _calls: int = 0

    def graph(self, name: str) -> Graph:
        """Return the graph; what it leaves out or lacks is in `problems`."""
        self._parts.budget.allow_for_bytes(self.archive.size)
        record = parse_layer(self.archive.config, self.archive.file)
        if record.inner is None:
            raise unknown_layer(record, self.archive.file)
        model = record.inner
        values = tuple(input_values(model, record.config, self.archive.file))
        self.shapes.check(values, self.archive.file)
        inputs = tuple(map(self._input, values))
        take = UniqueNames().take
        titles = tuple(map(take, _port_names(model)))
        ports = OutputPorts(self._parts, self.archive.file)
        ports.reserve({*titles} - {tensor.name for tensor in inputs})
        try:
            results = self._model(model, weights_of(self.archive), inputs)
        except UnreadValueError:
            results = ()
        own = ports.of(zip(titles, results, strict=False), inputs)
        self.problems += ports.problems
        states = self._lasting_states({port.computed: port.own for port in own})
        outputs = (*(port.own for port in own), *(state.after for state in states))
        return Graph(
            name=name,
            inputs=(*inputs, *(state.before for state in states)),
            outputs=outputs,
            nodes=tuple(live_nodes(self._parts.nodes, outputs)),
            source_sha256=self.archive.sha256,
            source_bytes=self.archive.size,
            states=states,
        )

    def _lasting_states(self, renamed: Mapping[Tensor, Tensor]) -> tuple[State, ...]:
        """Return the states; what a run leaves of one is a tensor of its own."""
        states = []
        for before, (initial, computed) in self._states.items():
            after = Tensor(self._parts.tensor_names.take(f"{before.name}_after"), before.type)
            source = SourceLocation(self.archive.file, -1, "STATE")
            label = self._parts.node_names.take(before.name)
            value = renamed.get(computed, computed)
            self._parts.nodes.append(Node(Reshape(), (value,), (after,), label, source))
            states.append(State(before, after, initial))
        return tuple(states)

    # --- ports ------------------------------------------------------------------------------------

    def _input(self, value: FileValue) -> Tensor:
        shape = self.shapes.of(value, self.archive.file)
        name = self._parts.tensor_names.take(value.name)
        return Tensor(name, TensorType(shape, value.dtype))

    # --- models -----------------------------------------------------------------------------------

    def _model(
        self, model: ModelRecord, weights: Weights, inputs: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        """Return the results of a model.

        Raises:
            UnreadValueError: one of them could not be read.
        """
        of_layers = weights.of_layers(model)
        if model.is_sequential:
            value: Operand = inputs[0] if len(inputs) == 1 else tuple(inputs)
            for layer in model.layers:
                if layer.kind != INPUT:
                    results = self._tried(layer, of_layers[layer.name], (value,), {})
                    value = _one(results)
            return tensors_of(value)
        known = {
            (port.result.layer, 0): (x,)
            for port, x in zip(model.inputs, inputs, strict=False)
        }  # fmt: skip
        if len(inputs) != len(model.inputs):
            raise ModelFileError(
                f"it is called with {len(inputs)} tensors", where=self._where_of(model.name),
                legal=str(len(model.inputs)), fix=SAVE_AGAIN,
            )  # fmt: skip
        values: dict[tuple[str, int], tuple[Tensor, ...] | None] = {**known}
        layers = {layer.name: layer for layer in model.layers}
        for name, call in _order(model, layers, values.keys(), self._where_of(model.name)):
            layer = layers[name]
            try:
                arguments = layer.calls[call]
                positional = tuple(_filled(a, values, layer.name) for a in arguments.positional)
                named = {key: _filled(a, values, name) for key, a in arguments.named.items()}
                values[name, call] = self._tried(layer, of_layers[name], positional, named)
            except UnreadValueError:
                values[name, call] = None
        return tensors_of(tuple(_filled(p.result, values, model.name) for p in model.outputs))

    def _tried(
        self, record: LayerRecord, weights: Weights, positional: Sequence[Operand],
        named: Mapping[str, Operand],
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Return the results of a layer; if it has a problem, note that.

        Raises:
            UnreadValueError: it has one.
        """
        try:
            return self.call(record, weights, positional, named)
        except UnreadValueError:
            raise
        except MicrotirError as error:
            if str(error) not in map(str, self.problems):
                self.problems.append(error)
            raise UnreadValueError("a layer could not be read", where=record.name) from None

    # --- layers -----------------------------------------------------------------------------------

    def call(
        self, record: LayerRecord, weights: Weights, positional: Sequence[Operand],
        named: Mapping[str, Operand],
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Return the results of a layer or of a model in the model.

        Raises:
            ModelFileError: it contradicts itself.
            UnsupportedModelError: it is not supported.
        """
        where = self._where_of(record.name, record.kind)
        self._calls += 1
        if len(self._place) > _MOST_DEPTH or self._calls > _MOST_CALLS:
            raise UnsupportedModelError(
                "its models are nested too deep", where=where,
                legal=f"at most {_MOST_DEPTH} levels and {_MOST_CALLS} calls of layers",
                fix=SAVE_AGAIN,
            )  # fmt: skip
        if record.inner is not None:
            self._place, outer = (*self._place, record.name), self._place
            try:
                return self._model(record.inner, weights, tensors_of(tuple(positional[:1])))
            finally:
                self._place = outer
        reader = KERAS_OPERATIONS.get(record.kind) if record.is_operation else None
        if reader is None and not record.is_stated_operation:
            reader = KERAS_READERS.get(record.kind)
        if reader is None or record.is_of_user:
            raise unknown_layer(record, where)
        check_policy(record, where)
        if reader is KERAS_READERS.get(record.kind):
            check_fields(record, reader.fields, where)
        layer = self._layer(record, weights, positional, named, where)
        self._parts.budget.allow_for_node()
        try:
            results = reader.read(layer)
        except MemoryError as error:
            raise layer.malformed(TOO_LARGE) from error
        except (ArithmeticError, ValueError) as error:
            raise layer.malformed(
                f"its configuration has numbers outside of the range of floats: {error}"
            ) from error
        if isinstance(results, Tensor) and reader.keeps_mask:
            self._pass_mask(layer, results)
        return results if isinstance(results, tuple) else (results,)

    def _layer(
        self, record: LayerRecord, weights: Weights, positional: Sequence[Operand],
        named: Mapping[str, Operand], where: str,
    ) -> KerasLayer:  # fmt: skip
        self._index += 1
        label = brief("/".join((*self._place, record.name)))
        source = SourceLocation(self.archive.file, self._index - 1, record.kind)
        emitter = NodeEmitter(self._parts, label, source, where, _Inside(where))
        node = OnnxNode(where, record.kind, VERSION, {}, (), 1, emitter)
        return KerasLayer(record, weights, tuple(positional), named, node, self)

    def _where_of(self, name: str, kind: str = "") -> str:
        title = "/".join((*self._place, name))
        return f"{self.archive.file}: {f'{brief(kind)} ' if kind else ''}{brief(title)!r}"

    # --- masks and states -------------------------------------------------------------------------

    def _pass_mask(self, layer: KerasLayer, result: Tensor) -> None:
        masks = [self._masks.get(x) for x in layer.inputs]
        if result not in self._masks and len(masks) == 1 and masks[0] is not None:
            self._masks[result] = masks[0]

    def mask(self, x: Tensor) -> Tensor | None:
        """Return which steps of a tensor count, if a layer has said so."""
        return self._masks.get(x)

    def set_mask(self, x: Tensor, mask: Tensor) -> None:
        """Say which steps of a tensor count."""
        self._masks[x] = mask

    def state(self, name: str, initial: Array) -> Tensor:
        """Return a value that lives from run to run, as a run finds it."""
        type_ = TensorType(initial.shape, DType(initial.dtype.name))
        before = Tensor(self._parts.tensor_names.take(name), type_)
        self._states[before] = initial, before
        return before

    def set_state(self, before: Tensor, after: Tensor) -> None:
        """Say what a run leaves of a value that lives from run to run."""
        self._states[before] = self._states[before][0], after


def _one(results: Sequence[Tensor]) -> Operand:
    return results[0] if len(results) == 1 else tuple(results)


def _results_of(argument: Argument) -> Iterator[Result]:
    """Yield the results that an argument is made of."""
    if isinstance(argument, Result):
        yield argument
    elif isinstance(argument, tuple):
        for item in argument:
            yield from _results_of(item)
    elif isinstance(argument, Mapping):
        for item in argument.values():
            yield from _results_of(item)


def _filled(
    argument: Argument, values: Mapping[tuple[str, int], tuple[Tensor, ...] | None], where: str
) -> Operand:
    """Return an argument with tensors in the place of results.

    Raises:
        UnreadValueError: one of them could not be read.
        ModelFileError: a layer has fewer results.
    """
    if isinstance(argument, Result):
        results = values[argument.layer, argument.call]
        if results is None:
            raise UnreadValueError("it depends on a part that could not be read", where=where)
        if argument.port >= len(results):
            raise ModelFileError(
                f"it takes result {argument.port} of {brief(argument.layer)!r}", where=where,
                legal=f"one of {len(results)}", fix=SAVE_AGAIN,
            )  # fmt: skip
        return results[argument.port]
    if isinstance(argument, tuple):
        return tuple(_filled(item, values, where) for item in argument)
    if isinstance(argument, Mapping):
        return {key: _filled(item, values, where) for key, item in argument.items()}
    return argument


def _order(
    model: ModelRecord, layers: Mapping[str, LayerRecord], known: Iterable[tuple[str, int]],
    where: str,
) -> list[tuple[str, int]]:  # fmt: skip
    """Return the calls that the results of a model need, each behind those that it needs.

    Raises:
        ModelFileError: a call needs itself, or one that does not exist.
    """
    done, begun = set(known), set[tuple[str, int]]()
    order: list[tuple[str, int]] = []
    stack = [(port.result.layer, port.result.call) for port in model.outputs[::-1]]
    while stack:
        key = stack[-1]
        if key in done:
            stack.pop()
            continue
        layer = layers.get(key[0])
        if layer is None or key[1] >= len(layer.calls):
            raise ModelFileError(f"call {key[1]} of {brief(key[0])!r} is missing", where=where,
                                 fix=SAVE_AGAIN)  # fmt: skip
        call = layer.calls[key[1]]
        needed = {
            (result.layer, result.call)
            for argument in (*call.positional, *call.named.values())
            for result in _results_of(argument)
        }
        missing = sorted(needed - done, reverse=True)
        if missing and key in begun:
            raise ModelFileError(f"{brief(key[0])!r} depends on its own result", where=where,
                                 fix=SAVE_AGAIN)  # fmt: skip
        if missing:
            begun.add(key)
            stack += missing
        else:
            stack.pop()
            done.add(key)
            order.append(key)
    return order


def _port_names(model: ModelRecord) -> tuple[str, ...]:
    """Return the names of outputs: those of a Sequential model are by its last layer."""
    if model.is_sequential:
        last = model.layers[-1] if model.layers else None
        inner = last.inner if last is not None else None
        count = len(_port_names(inner)) if inner is not None else 1
        return ((last.name if last is not None else model.name),) * count
    return tuple(port.name for port in model.outputs)
