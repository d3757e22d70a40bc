"""Configurations of models as records: layers, their calls, and which results go where.

A model is Sequential, or a graph of calls ("functional"); a layer that is called several times is
one record with several calls.  Keras 2 and 3 write the same in different forms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from microtir.errors import ModelFileError, UnsupportedModelError
from microtir.frontend.keras.archive import Json
from microtir.frontend.keras.hdf5 import SAVE_AGAIN
from microtir.graph.names import brief

FUNCTIONAL = ("Functional", "Model")
SEQUENTIAL = "Sequential"
INPUT = "InputLayer"

_MOST_LAYERS = 1 << 14
_OTHER_NAMES = {"GroupQueryAttention": "GroupedQueryAttention"}  # of the class, and its own


@dataclass(frozen=True, slots=True)
class Result:
    """Result `port` of call `call` of a layer."""

    layer: str
    call: int
    port: int


Argument: TypeAlias = (
    "Result | bool | int | float | str | tuple[Argument, ...] | Mapping[str, Argument] | None"
)
"""An argument of a call: results of other layers, and constants, nested."""


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of one call of a layer."""

    positional: tuple[Argument, ...]
    named: Mapping[str, Argument]


@dataclass(frozen=True, slots=True)
class LayerRecord:
    """A layer as it is configured.

    Args:
        kind: its class.
        name: in its model.
        config: of the layer.
        module: where its class comes from; empty where the file does not say.
        registered: the name under which a user registered the class; empty if none did.
        build: what the layer was built with.
        calls: in the order of their numbers.
        inner: the model that it is, if it is one.
    """

    kind: str
    name: str
    config: Mapping[str, Json]
    module: str = ""
    registered: str = ""
    build: Mapping[str, Json] | None = None
    calls: tuple[Call, ...] = ()
    inner: ModelRecord | None = None

    @property
    def is_stated_operation(self) -> bool:
        """Return whether the file says that it is a function of keras.ops."""
        return self.module.startswith(("keras.src.ops", "keras.ops"))

    @property
    def is_operation(self) -> bool:
        """Return whether it is a function of keras.ops, which has no weights, as far as is known.

        One HDF5 file does not say; layers can be trained, or could be.
        """
        is_unsaid = not self.module and "trainable" not in self.config
        return is_unsaid or self.is_stated_operation

    @property
    def is_of_user(self) -> bool:
        """Return whether the class is none of Keras."""
        known = ("keras", "tensorflow.keras", "tensorflow.python.keras", "tf_keras", "tf.keras")
        is_other = bool(self.module) and not self.module.startswith(known)
        return is_other or ">" in self.registered or ">" in self.kind


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a model, by its key in a dictionary, or by its layer's name."""

    name: str
    result: Result


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A model: layers, and for a functional one what its inputs and results are.

    Args:
        name: of the model.
        is_sequential: whether each layer is called with the result of the one before.
        layers: in the order in which weights are stored.
        inputs: what a caller gives.
        outputs: what it gets.
    """

    name: str
    is_sequential: bool
    layers: tuple[LayerRecord, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


def parse_layer(config: Json, where: str) -> LayerRecord:
    """Read the configuration of a layer, or of a whole model.

    Raises:
        ModelFileError: it contradicts itself.
        UnsupportedModelError: it is a model whose class a user wrote.
    """
    entry = _object(config, "a layer", where)
    kind, inner = str(entry.get("class_name", "")), entry.get("config")
    registered, module = entry.get("registered_name"), entry.get("module")
    if isinstance(inner, list) and kind == SEQUENTIAL:  # as the first versions wrote it
        inner = {"layers": inner}
    settings = _object(inner, f"the configuration of {brief(kind)!r}", where)
    name = str(entry.get("name", settings.get("name", kind)))
    place = f"{where}: {kind} {brief(name)!r}"
    build = entry.get("build_config")
    return LayerRecord(
        kind=_OTHER_NAMES.get(kind, kind),
        name=name,
        config=settings,
        module=module if isinstance(module, str) else "",
        registered=registered if isinstance(registered, str) else "",
        build=build if isinstance(build, dict) else None,
        calls=tuple(_calls(entry.get("inbound_nodes", []), place)),
        inner=_model(kind, name, settings, place) if kind in (*FUNCTIONAL, SEQUENTIAL) else None,
    )


def _model(kind: str, name: str, config: Mapping[str, Json], where: str) -> ModelRecord:
    entries = config.get("layers")
    if not isinstance(entries, list) or len(entries) > _MOST_LAYERS:
        raise UnsupportedModelError(
            "its configuration lists no layers, because a subclass of Model is Python code",
            where=where,
            legal="Sequential and functional models",
            fix="build the model as keras.Sequential, or as keras.Model of inputs and outputs, and"
            " copy the weights of its layers",
        )
    layers = tuple(parse_layer(entry, where) for entry in entries)
    if len({layer.name for layer in layers}) < len(layers):
        raise ModelFileError("two of its layers have the same name", where=where, fix=SAVE_AGAIN)
    if kind == SEQUENTIAL:
        return ModelRecord(name, True, layers, (), ())
    counted = {layer.name for layer in layers if layer.kind in FUNCTIONAL}
    if any(_is_old(entry) for entry in entries):
        # Models begin with a call of their own there, whatever kind they are.
        counted = {layer.name for layer in layers if layer.inner is not None}
        layers = tuple(_recounted(layer, counted) for layer in layers)
    inputs, outputs = (
        tuple(
            Port(port.name, _without_first(port.result, counted))
            for port in _ports(config.get(key), where)
        )
        for key in ("input_layers", "output_layers")
    )
    return ModelRecord(name, False, layers, inputs, outputs)


def _is_old(entry: Json) -> bool:
    nodes = entry.get("inbound_nodes") if isinstance(entry, dict) else None
    return isinstance(nodes, list) and bool(nodes) and isinstance(nodes[0], list)


def _without_first(result: Result, counted: set[str]) -> Result:
    """Return a result with calls counted from the first one of a model in another."""
    if result.layer not in counted:
        return result
    return Result(result.layer, max(result.call - 1, 0), result.port)


def _recounted(layer: LayerRecord, counted: set[str]) -> LayerRecord:
    def of(argument: Argument) -> Argument:
        if isinstance(argument, Result):
            return _without_first(argument, counted)
        if isinstance(argument, tuple):
            return tuple(map(of, argument))
        if isinstance(argument, Mapping):
            return {key: of(value) for key, value in argument.items()}
        return argument

    calls = tuple(
        Call(tuple(map(of, call.positional)), {n: of(v) for n, v in call.named.items()})
        for call in layer.calls
    )
    return LayerRecord(
        layer.kind, layer.name, layer.config, layer.module, layer.registered, layer.build, calls,
        layer.inner,
    )  # fmt: skip


def _ports(value: Json, where: str, name: str = "") -> Iterator[Port]:
    """Yield the inputs or outputs of a model, by the keys of a dictionary or by their layers."""
    result = _old_result(value)
    if result is not None:
        yield Port(name or result.layer, result)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _ports(item, where, key)
    elif isinstance(value, list):
        for item in value:
            yield from _ports(item, where)
    else:
        raise ModelFileError("its inputs or outputs are not listed", where=where, fix=SAVE_AGAIN)


def _old_result(value: Json) -> Result | None:
    """Return what a list of a layer, a call and a port stands for."""
    if not isinstance(value, list) or len(value) < 3 or not isinstance(value[0], str):
        return None
    call, port = value[1], value[2]
    if not isinstance(call, int) or not isinstance(port, int) or min(call, port) < 0:
        return None
    return Result(value[0], call, port)


def _calls(nodes: Json, where: str) -> Iterator[Call]:
    if not isinstance(nodes, list):
        raise ModelFileError("its calls are not a list", where=where, fix=SAVE_AGAIN)
    for node in nodes:
        if isinstance(node, dict):
            positional = _argument(node.get("args", []), where)
            named = _argument(node.get("kwargs", {}), where)
            if not isinstance(positional, tuple) or not isinstance(named, Mapping):
                raise ModelFileError("its call has no arguments", where=where, fix=SAVE_AGAIN)
            yield Call(positional, named)
        else:
            yield _old_call(node, where)


def _old_call(node: Json, where: str) -> Call:
    """Read a call of Keras 2: results, the first of which come with arguments by name."""
    entries = [node] if _old_result(node) is not None else node
    results: list[Argument] = []
    named: dict[str, Argument] = {}
    for entry in entries if isinstance(entries, list) else [None]:
        result = _old_result(entry)
        if result is None or not isinstance(entry, list):
            raise ModelFileError(
                "a call in it does not name the result that it takes", where=where, fix=SAVE_AGAIN
            )
        results.append(result)
        if len(entry) > 3 and isinstance(entry[3], dict):
            named |= {key: _old_argument(value) for key, value in entry[3].items()}
    return Call((results[0] if len(results) == 1 else tuple(results),), named)


def _old_argument(value: Json) -> Argument:
    result = _old_result(value)
    if result is not None:
        return result
    if isinstance(value, list):
        return tuple(map(_old_argument, value))
    if isinstance(value, dict):
        return {key: _old_argument(item) for key, item in value.items()}
    return value


def _argument(value: Json, where: str) -> Argument:
    """Return an argument of Keras 3, where results of layers are objects that say so."""
    if isinstance(value, list):
        return tuple(_argument(item, where) for item in value)
    if not isinstance(value, dict):
        return value
    if value.get("class_name") == "__keras_tensor__":
        config = _object(value.get("config"), "a result", where)
        history = config.get("keras_history")
        result = _old_result(history)
        if result is None:
            raise ModelFileError(
                "a call in it does not name the result that it takes", where=where, fix=SAVE_AGAIN
            )
        return result
    if value.get("class_name") == "__tuple__" and isinstance(value.get("items"), list):
        return _argument(value["items"], where)
    return {key: _argument(item, where) for key, item in value.items()}


def _object(value: Json, what: str, where: str) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise ModelFileError(f"{what} is not a JSON object", where=where, fix=SAVE_AGAIN)
    return value
