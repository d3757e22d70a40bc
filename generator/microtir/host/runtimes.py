"""Sessions of other runtimes, each with the kernels and options that reference outputs are of.

Only the process of an oracle makes them: see `oracle_process`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from microtir.errors import MicrotirError, ToolError
from microtir.graph.ir import Array

TFLM, LITERT, ONNXRUNTIME = "tflm", "litert", "onnxruntime"

_ARENA_BYTES = 1 << 25
"""Arena larger than any model for a microcontroller needs; untouched pages cost nothing."""

_FED = MappingProxyType({
    "float": "float32", "float16": "float16", "double": "float64", "bool": "bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
})  # fmt: skip
"""Element types of onnxruntime, as numpy calls them."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An input of the file that is given what an output of the run before was; at first `first`."""

    input: str
    output: str
    first: Array


@dataclass(frozen=True, slots=True)
class Ports:
    """Names of arguments and results, and the folder of the model file; empty for bytes.

    Of the results that are `counted` data say how many rows there are, and there may be none.
    `states` are neither arguments nor results: a session hands them on.  Of results that are
    strings `names` are those that there are, by the result: they are handed over as places in it.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    folder: str = ""
    counted: frozenset[str] = frozenset()
    states: tuple[Kept, ...] = ()
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Session(Protocol):
    """A model that is ready to run; what it keeps between runs begins as the file says."""

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Return the results of a run, in the order of the ports, as are the inputs."""
        ...


class TflmSession:
    """tflite-micro with its reference kernels."""

    def __init__(self, model: bytes, ports: Ports) -> None:
        from tflite_micro import runtime

        self._results = len(ports.outputs)
        self._interpreter = runtime.Interpreter.from_bytes(model, arena_size=_ARENA_BYTES)

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Return the results of a run."""
        for index, values in enumerate(inputs):
            self._interpreter.set_input(values, index)
        self._interpreter.invoke()
        return [np.array(self._interpreter.get_output(n)) for n in range(self._results)]


class LiteRtSession:
    """LiteRT with its reference kernels: no delegate, and one thread."""

    def __init__(self, model: bytes, ports: Ports) -> None:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        self._results = len(ports.outputs)
        self._interpreter = Interpreter(
            model_content=model,
            experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
            num_threads=1,
        )
        self._interpreter.allocate_tensors()

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Return the results of a run."""
        details = self._interpreter.get_input_details()
        for detail, values in zip(details, inputs, strict=True):
            self._interpreter.set_tensor(detail["index"], values)
        self._interpreter.invoke()
        outputs = self._interpreter.get_output_details()[: self._results]
        return [np.array(self._interpreter.get_tensor(detail["index"])) for detail in outputs]


class OnnxRuntimeSession:
    """onnxruntime on one thread of this CPU, with its graph optimisations off.

    With them it fuses steps into kernels that depend on the CPU: some add int8 products in int16,
    which saturates.  Without them every node is computed by itself, as ONNX defines it.
    """

    def __init__(self, model: bytes, ports: Ports) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        options.log_severity_level = 4  # what matters is raised
        self._ports = ports
        self._states: dict[str, Array] = {state.input: state.first for state in ports.states}
        self._session = onnxruntime.InferenceSession(
            _self_contained(model, ports.folder), options, providers=["CPUExecutionProvider"]
        )

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Return the results of a run: floats of any width as float32."""
        fed_values = {**dict(zip(self._ports.inputs, inputs, strict=True)), **self._states}
        fed = {port.name: _fed(port, fed_values) for port in self._session.get_inputs()}
        arrays = self._session.run(None, fed)
        values = {p.name: v for p, v in zip(self._session.get_outputs(), arrays, strict=True)}
        for name in self._ports.names.keys() & values.keys():
            values[name] = _places(values[name], self._ports.names[name])
        for state in self._ports.states:
            if state.output not in values:
                raise ToolError(
                    f"its output '{state.output}' is part of a sequence, so it cannot be a state"
                )
            self._states[state.input] = np.asarray(values.pop(state.output))
        results = [
            array
            for name, value in values.items()
            for array in _tensors(value, is_counted=name in self._ports.counted)
        ]
        if len(results) != len(self._ports.outputs):
            raise ToolError(
                f"it returns {len(results)} outputs with elements, and the model in microtir"
                f" has {len(self._ports.outputs)}"
            )
        return [a.astype(np.float32) if a.dtype.kind == "f" else a for a in results]


def _self_contained(model: bytes, folder: str) -> bytes:
    """Return a model without values in other files, and with tensors in the place of maps."""
    import onnx
    from onnx.external_data_helper import load_external_data_for_model

    read = onnx.load_model_from_string(model)
    maps = {n.output[0]: n.input[0] for n in read.graph.node if n.op_type == "ZipMap"}
    size = read.ByteSize()
    if folder:  # without one the reader has refused values in other files
        load_external_data_for_model(read, folder)
    if read.ByteSize() == size and not maps:
        return model
    for value in read.graph.output:
        if value.name in maps:
            float_ = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)
            value.CopyFrom(onnx.helper.make_value_info(maps[value.name], float_))
    return bytes(read.SerializeToString())


def _places(texts: Array, names: Sequence[str]) -> Array:
    """Return where strings are in a list of names; -1 for one that is not there."""
    places = {name: place for place, name in enumerate(names)}
    flat = [places.get(text, -1) for text in np.asarray(texts).reshape(-1).tolist()]
    return np.array(flat, np.int64).reshape(np.shape(texts))


def _fed(port: Any, values: Mapping[str, Array]) -> Array | list[Array]:
    """Return what an input of onnxruntime is given; one without elements is no argument."""
    is_sequence = port.type.startswith("seq(")
    element = port.type.removeprefix("seq(").removeprefix("tensor(").rstrip(")")
    if element == "string" and port.name not in values:  # which nothing in the model takes
        return np.full([e if isinstance(e, int) else 1 for e in port.shape], "", np.object_)
    if element not in _FED:
        raise ToolError(f"its input '{port.name}' is a {port.type}, which numpy does not have")
    dtype = _FED[element]
    if is_sequence:
        return [array.astype(dtype) for array in _numbered(port.name, values)]
    if port.name in values:
        return values[port.name].astype(dtype)
    return np.zeros([e if isinstance(e, int) else 1 for e in port.shape], dtype)


def _numbered(name: str, values: Mapping[str, Array]) -> Iterator[Array]:
    """Yield the tensors of a sequence."""
    number = 0
    while (title := f"{name}.{number}") in values:
        yield values[title]
        number += 1


def _tensors(value: Any, *, is_counted: bool) -> Iterator[Array]:
    """Yield an output, or those of a sequence; what never has elements is no result."""
    for item in value if isinstance(value, list) else [value]:
        array = np.asarray(item)
        if array.size or is_counted:
            yield array


RUNTIMES: Mapping[str, Callable[[bytes, Ports], Session]] = MappingProxyType({
    TFLM: TflmSession, LITERT: LiteRtSession, ONNXRUNTIME: OnnxRuntimeSession,
})  # fmt: skip


def refusals(runtime: str) -> tuple[type[Exception], ...]:
    """Return what a runtime raises of a model that it does not take, or that it lacks a package."""
    usual = (ImportError, RuntimeError, ValueError, MicrotirError)
    if runtime != ONNXRUNTIME:
        return usual
    try:
        from google.protobuf.message import DecodeError
        from onnxruntime.capi import onnxruntime_pybind11_state as errors
    except ImportError:
        return usual
    return (
        *usual, DecodeError, errors.Fail, errors.InvalidGraph, errors.InvalidArgument,
        errors.InvalidProtobuf, errors.NotImplemented, errors.RuntimeException, errors.EPFail,
    )  # fmt: skip
