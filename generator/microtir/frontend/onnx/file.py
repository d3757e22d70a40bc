"""The content of an ONNX file as plain records: what the messages say, not yet what it means.

The package `onnx` reads the bytes and knows the rules of the container; it is the extra
`microtir[onnx]`. Everything that can be wrong with the file as a container is found here.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from microtir.dtype import DType
from microtir.errors import ExportProblem, ModelFileError, UnsupportedModelError
from microtir.frontend.onnx.container import EXPORT, checked_model
from microtir.frontend.onnx.exporters import with_exporters_option
from microtir.frontend.onnx.inner_graphs import graphs_of
from microtir.graph.ir import Array
from microtir.graph.names import brief
from microtir.operators.common.onnx_few_bits import FEW_BITS, FewBits
from microtir.operators.common.onnx_operands import AttributeValue

if TYPE_CHECKING:
    import onnx

MAX_ITEMS = 1 << 16
"""Most nodes, values or initialisers; each becomes Python objects far larger than its bytes."""

MAX_TENSOR_BYTES = (1 << 31) - 1
"""Largest tensor, in bytes: generated code indexes with 32-bit integers."""

MAX_RANK = 8

_USUAL_OPSET = 17  # what exporters that have a choice are asked for

OLDEST_OPSET = 7
"""Oldest opset with today's broadcasting and batches; nodes written alike before are read."""

T = TypeVar("T")

# Floats of other widths are computed as float32, and are so in the interface of the model, too.
_DTYPES: Mapping[int, DType] = {
    1: DType.FLOAT32, 2: DType.UINT8, 3: DType.INT8, 4: DType.UINT16, 5: DType.INT16,
    6: DType.INT32, 7: DType.INT64, 9: DType.BOOL, 10: DType.FLOAT32, 11: DType.FLOAT32,
    12: DType.UINT32, 13: DType.UINT64, **{number: few.held for number, few in FEW_BITS.items()},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileValue:
    """An input or output; a dimension is a number, a name, or empty where nothing is known."""

    name: str
    dtype: DType
    shape: tuple[int | str, ...] | None
    few_bits: FewBits | None = None  # its type, if that has fewer than 8
    is_sequence: bool = False  # of tensors of this type, as many as the file does not say
    is_text: bool = False  # an output of strings, which are places in a list of known ones


@dataclass(frozen=True, slots=True)
class FileNode:
    """A node; an input that is left out has an empty name."""

    index: int
    name: str
    operator: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, AttributeValue]


@dataclass(frozen=True, slots=True)
class FileGraph:
    """A graph; a constant may be an input, too, which a caller could give another value."""

    name: str
    nodes: tuple[FileNode, ...]
    inputs: tuple[FileValue, ...]
    outputs: tuple[FileValue, ...]
    constants: Mapping[str, Array]
    few_bits: Mapping[str, FewBits] = field(default_factory=dict)  # types of constants


@dataclass(frozen=True, slots=True)
class FileBody:
    """A graph inside of a node, or the body of a function: what it is given has no types."""

    nodes: tuple[FileNode, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Array]
    message: onnx.GraphProto | None = None  # for functions that take it in


@dataclass(frozen=True, slots=True)
class OnnxFile:
    """A whole file; `opsets` are the versions of operator sets by domain."""

    file: str
    sha256: str
    size: int
    opsets: Mapping[str, int]
    graph: FileGraph
    producer: str  # the exporter, as it calls itself


def names_taken(node: FileNode) -> Iterator[str]:
    """Yield the names of values that a node and the graphs inside of it take."""
    yield from node.inputs
    for value in node.attributes.values():
        if isinstance(value, FileBody):
            yield from value.outputs
            for inner in value.nodes:
                yield from names_taken(inner)


def parse(data: bytes, file: str, folder: Path | None) -> OnnxFile:
    """Read all messages of a model, with functions expanded.

    Args:
        data: the file.
        file: its name, for messages.
        folder: which external data may lie in; None if there is none.

    Raises:
        ToolError: the package `onnx` is not installed.
        ModelFileError: the bytes are no ONNX model, or contradict themselves.
        UnsupportedModelError: a type or the version of the operator set is not supported.
    """
    model = checked_model(data, file, folder)
    opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in model.opset_import}
    try:
        _check_operator_set(model.graph, opsets, file)
        graph = FileReader(file).graph(model.graph)
    except UnsupportedModelError as error:
        raise with_exporters_option(error, model.producer_name) from None
    return OnnxFile(
        file=file,
        sha256=hashlib.sha256(data).hexdigest(),
        size=len(data),
        opsets=opsets,
        graph=graph,
        producer=model.producer_name,
    )


def _check_operator_set(graph: onnx.GraphProto, opsets: Mapping[str, int], file: str) -> None:
    """Refuse a set that is older than those that are read, if an operator of the graph changed."""
    changed = _changed_since(graph, opsets.get("", OLDEST_OPSET))
    if changed:
        raise UnsupportedModelError(
            f"the version of its operator set is {opsets['']}, and {changed} has changed since",
            where=file,
            legal=f"{OLDEST_OPSET} or later",
            fix="export with a newer operator set, or convert it: onnx.version_converter",
            export=ExportProblem.OLD_OPERATOR_SET,
            export_value=str(_USUAL_OPSET),
        )


def _changed_since(graph: onnx.GraphProto, version: int) -> str:
    """Return an operator of a graph with another definition in the oldest set that is read."""
    from onnx import defs

    if version >= OLDEST_OPSET:
        return ""
    for node in graph.node:
        for attribute in node.attribute:
            inside = _changed_since(attribute.g, version)
            if inside:
                return inside
        if node.domain in ("", "ai.onnx"):
            sets = (version, OLDEST_OPSET)
            try:
                then, now = (defs.get_schema(node.op_type, at).since_version for at in sets)
            except defs.SchemaError:
                return str(node.op_type)
            if then != now:
                return str(node.op_type)
    return ""


class FileReader:
    """Reads messages; `file` names them in errors."""

    def __init__(self, file: str) -> None:
        self.file = file

    def graph(self, graph: onnx.GraphProto) -> FileGraph:
        constants = self._constants(graph)
        return FileGraph(
            name=graph.name,
            nodes=tuple(self.node(index, node) for index, node in enumerate(graph.node)),
            inputs=self._inputs(graph, constants),
            outputs=self._outputs(graph),
            constants=constants,
            few_bits={
                tensor.name: FEW_BITS[tensor.data_type]
                for tensor in graph.initializer
                if tensor.data_type in FEW_BITS
            },
        )

    def _inputs(
        self, graph: onnx.GraphProto, constants: Mapping[str, Array]
    ) -> tuple[FileValue, ...]:
        """Return the inputs that a caller gives; strings that nothing takes are none."""
        used = {name for inner in graphs_of(graph) for name in _names_used(inner)}
        values = (value for value in graph.input if value.name not in constants)
        return tuple(
            self.value(value) for value in values if value.name in used or _is_readable(value)
        )

    def _outputs(self, graph: onnx.GraphProto) -> tuple[FileValue, ...]:
        """Return the outputs; maps that a ZipMap makes are the tensor that it makes them of."""
        zipped = {name for node in graph.node if node.op_type == "ZipMap" for name in node.output}
        return tuple(
            FileValue(value.name, DType.FLOAT32, None)
            if value.name in zipped
            else self.value(value, is_output=True)
            for value in graph.output
        )

    def body(self, graph: onnx.GraphProto) -> FileBody:
        """Return a graph that an attribute holds."""
        constants = self._constants(graph)
        return FileBody(
            nodes=tuple(self.node(index, node) for index, node in enumerate(graph.node)),
            inputs=tuple(value.name for value in graph.input if value.name not in constants),
            outputs=tuple(value.name for value in graph.output),
            constants=constants,
            message=graph,
        )

    def _constants(self, graph: onnx.GraphProto) -> dict[str, Array]:
        """Return the initialisers, and check that the graph has not too much of anything."""
        for items in (graph.node, graph.initializer, graph.input, graph.output):
            if len(items) > MAX_ITEMS:
                raise self.malformed(
                    f"the graph has {len(items)} nodes, constants, inputs or outputs",
                    f"at most {MAX_ITEMS} of each",
                )
        used = {name for inner in graphs_of(graph) for name in _names_used(inner)}
        return {
            tensor.name: self.array(tensor, keeps_strings=True)
            for tensor in graph.initializer
            if tensor.name in used or tensor.data_type in _DTYPES
        }

    def value(self, value: onnx.ValueInfoProto, *, is_output: bool = False) -> FileValue:
        """Return the type of an input or output."""
        where = f"{self.file}: {brief(value.name)!r}"
        kind = value.type.WhichOneof("value")
        is_sequence = kind == "sequence_type"
        held = value.type.sequence_type.elem_type if is_sequence else value.type
        kind_held = held.WhichOneof("value")
        if kind_held != "tensor_type":
            kinds = dict.fromkeys((kind, kind_held))
            words = [str(each).removesuffix("_type") for each in kinds]
            raise UnsupportedModelError(
                f"it is a {' of a '.join(words)}", where=where,
                legal="a tensor, or a sequence of tensors",
                fix="export the model with tensors as inputs and outputs",
                export=ExportProblem.MAPS if kind_held == "map_type" and is_output else None,
            )  # fmt: skip
        type_ = held.tensor_type
        is_text = is_output and not is_sequence and type_.elem_type == _STRING
        dtype = DType.INT64 if is_text else self.dtype(type_.elem_type, where)
        shape = _extents(type_.shape) if type_.HasField("shape") else None
        few_bits = FEW_BITS.get(type_.elem_type)
        return FileValue(value.name, dtype, shape, few_bits, is_sequence, is_text)

    def dtype(self, number: int, where: str) -> DType:
        """Return a scalar type.

        Raises:
            UnsupportedModelError: microtir has none such.
        """
        if number not in _DTYPES:
            raise UnsupportedModelError(
                f"its type is {_type_name(number)}",
                where=where,
                legal=", ".join(dict.fromkeys(dtype.value for dtype in _DTYPES.values())),
                fix="export the model in float32, or quantised to integers",
                export=ExportProblem.STRINGS if number == _STRING else ExportProblem.OTHER_FLOATS,
            )
        return _DTYPES[number]

    def node(self, index: int, node: onnx.NodeProto) -> FileNode:
        where = f"{self.file}: node {index} {node.op_type}"
        return FileNode(
            index=index,
            name=node.name,
            operator=node.op_type,
            domain="" if node.domain == "ai.onnx" else node.domain,
            inputs=tuple(node.input),
            outputs=tuple(node.output),
            attributes={a.name: self.attribute(a, where) for a in node.attribute},
        )

    def attribute(self, attribute: onnx.AttributeProto, where: str) -> AttributeValue:
        kinds: dict[int, Callable[[onnx.AttributeProto], AttributeValue]] = {
            1: lambda a: float(a.f),
            2: lambda a: int(a.i),
            3: lambda a: a.s.decode("utf-8", "replace"),
            4: lambda a: self.array(a.t, keeps_doubles=True, keeps_strings=True),
            5: lambda a: self.body(a.g),
            6: lambda a: tuple(float(item) for item in a.floats),
            7: lambda a: tuple(int(item) for item in a.ints),
            8: lambda a: tuple(item.decode("utf-8", "replace") for item in a.strings),
        }
        if attribute.type not in kinds:
            raise UnsupportedModelError(
                f"its attribute '{brief(attribute.name)}' is of kind {attribute.type}",
                where=where,
                legal="numbers, strings, lists of these, tensors, and graphs",
                fix="replace the layer, or compute it in the application",
            )
        return kinds[attribute.type](attribute)

    def array(
        self,
        tensor: onnx.TensorProto,
        *,
        keeps_doubles: bool = False,
        keeps_strings: bool = False,
    ) -> Array:
        """Return the values of a tensor, read-only; float16 and float64 become float32.

        Args:
            tensor: of the file.
            keeps_doubles: whether float64 stays, for those who look at more bits.
            keeps_strings: whether it may hold strings, for those who know what becomes of them.

        Raises:
            ModelFileError: the bytes are not those of its shape, or lie elsewhere.
        """
        from onnx import numpy_helper

        where = f"{self.file}: tensor {brief(tensor.name)!r}"
        dims = tuple(tensor.dims)
        elements = math.prod(dims)
        if min(dims, default=0) < 0 or len(dims) > MAX_RANK or elements * 8 > MAX_TENSOR_BYTES:
            raise ModelFileError(
                f"its shape is {dims}", where=where,
                legal=f"at most {MAX_RANK} dimensions and {MAX_TENSOR_BYTES} bytes", fix=EXPORT,
            )  # fmt: skip
        is_wide = tensor.data_type in (_FLOAT16, _FLOAT64)
        if not is_wide and not (keeps_strings and tensor.data_type == _STRING):
            self.dtype(tensor.data_type, where)
        try:
            data: Array = numpy_helper.to_array(tensor)
        except (ValueError, TypeError, OSError) as error:
            raise ModelFileError(
                f"its values cannot be read: {error}", where=where, fix=EXPORT
            ) from None
        if is_wide and not (keeps_doubles and tensor.data_type == _FLOAT64):
            with np.errstate(over="ignore"):
                data = data.astype(np.float32)
        if tensor.data_type in FEW_BITS:
            data = data.astype(FEW_BITS[tensor.data_type].held.value)
        data = data.reshape(dims).copy()
        data.flags.writeable = False
        return data

    def malformed(self, what: str, legal: str) -> ModelFileError:
        return ModelFileError(what, where=self.file, legal=legal, fix=EXPORT)


_STRING, _FLOAT16, _FLOAT64 = 8, 10, 11


def _is_readable(value: onnx.ValueInfoProto) -> bool:
    is_tensor = value.type.HasField("tensor_type")
    return not is_tensor or value.type.tensor_type.elem_type in _DTYPES


def _names_used(graph: onnx.GraphProto) -> Iterator[str]:
    """Yield the names of values that the nodes and outputs of a graph take."""
    for node in graph.node:
        yield from node.input
    yield from (value.name for value in graph.output)


def _extents(shape: onnx.TensorShapeProto) -> tuple[int | str, ...]:
    """Return the extents; one below 0 is as open as one that has a name."""
    return tuple(
        int(d.dim_value)
        if d.WhichOneof("value") == "dim_value" and d.dim_value >= 0
        else d.dim_param
        for d in shape.dim
    )


def _type_name(number: int) -> str:
    import onnx

    known: Iterable[tuple[str, Any]] = onnx.TensorProto.DataType.items()
    return next((name for name, value in known if value == number), f"number {number}")
