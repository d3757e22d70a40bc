"""Write TFLite model files: tensors, operators, subgraphs.

    builder = TfliteBuilder()
    x = builder.tensor("x", (1, 8), np.float32)
    y = builder.tensor("y", (1, 8), np.float32)
    builder.operator(BuiltinOperator.RELU, [x], [y])
    model = builder.build([x], [y])

What operators run, such as the body of a loop, is a subgraph of the same file:

    body = builder.subgraph("body")
    ...
    body.define([state], [next_state])

The same calls give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum, IntEnum
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_origin, get_type_hints

import flatbuffers
import numpy as np
import numpy.typing as npt

from microtir.errors import UsageError
from microtir.frontend.tflite_file import FILE_IDENTIFIER, SCHEMA_VERSION
from microtir.frontend.tflite_operators import OPTIONS_OF
from microtir.frontend.tflite_sparsity import FileSparsity
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, TfliteType
from scripts.models.tflite_versions import Operand, operator_version

OPTIONAL_INPUT = -1
"""Tensor index that stands for an optional input that is left out, such as a bias."""


class _Wire(Enum):
    """How a table stores a field: the word in the name of the FlatBuffer builder's method."""

    INT8 = "Int8"
    UINT8 = "Uint8"
    INT32 = "Int32"
    UINT32 = "Uint32"
    BOOL = "Bool"
    FLOAT32 = "Float32"
    OFFSET = "UOffsetTRelative"


_WIRE_OF_SCALAR: Mapping[type, _Wire] = MappingProxyType(
    {bool: _Wire.BOOL, int: _Wire.INT32, float: _Wire.FLOAT32}
)

_Entry: TypeAlias = tuple[int, _Wire, Any]
"""Slot, storage and value of a table's field; an offset of 0 is a field left out."""

_CUSTOM_CODE = 32
_LAST_ONE_BYTE_CODE = 127
_BUFFER_ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class _Tensor:
    name: str
    shape: tuple[int, ...]
    type: TfliteType
    buffer: int
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int
    shape_signature: tuple[int, ...]
    is_variable: bool
    sparsity: FileSparsity | None = None

    def operand(self) -> Operand:
        return Operand(self.type, len(self.shape), self.scales)


@dataclass(frozen=True, slots=True)
class _OperatorCode:
    code: int
    version: int
    custom_name: str = ""


@dataclass(frozen=True, slots=True)
class _Operator:
    code_index: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Options
    table: int = 0
    custom_options: bytes = b""


@dataclass(slots=True)
class _File:
    """What the subgraphs of a file share."""

    # Buffer 0 is empty by convention: every tensor without data refers to it.
    buffers: list[bytes] = field(default_factory=lambda: [b""])
    codes: list[_OperatorCode] = field(default_factory=list)
    graphs: list[TfliteBuilder] = field(default_factory=list)
    signatures: list[tuple[str, int]] = field(default_factory=list)
    metadata: list[tuple[str, int]] = field(default_factory=list)


class TfliteBuilder:
    """Collects tensors and operators in execution order; `build` gives the file's bytes.

    Args:
        description: of the file.
        name: of the subgraph.
        file: what a further subgraph belongs to.
    """

    def __init__(
        self, description: str = "microtir", *, name: str = "main", file: _File | None = None
    ) -> None:
        self._description = description
        self._name = name
        self._tensors: list[_Tensor] = []
        self._file = _File() if file is None else file
        self._operators: list[_Operator] = []
        self._ports: tuple[tuple[int, ...], tuple[int, ...]] = (), ()
        self.number = len(self._file.graphs)
        self._file.graphs.append(self)

    def subgraph(self, name: str) -> TfliteBuilder:
        """Return a further subgraph; its `number` is what options of operators call it by."""
        return TfliteBuilder(name=name, file=self._file)

    def define(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Say what a subgraph is given and gives."""
        for index in (*inputs, *outputs):
            self._operand(index, f"inputs and outputs of {self._name!r}", optional=False)
        self._ports = tuple(inputs), tuple(outputs)

    def signature(self, key: str) -> None:
        """Give the subgraph a name by which callers ask for it."""
        self._file.signatures.append((key, self.number))

    def metadata(self, name: str, data: bytes) -> None:
        """Add bytes that belong to the file and to no tensor."""
        self._file.buffers.append(data)
        self._file.metadata.append((name, len(self._file.buffers) - 1))

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        dtype: npt.DTypeLike | Literal["resource", "int4"],
        data: npt.ArrayLike | None = None,
        scales: npt.ArrayLike | None = None,
        zero_points: npt.ArrayLike | None = None,
        axis: int | None = None,
        *,
        shape_signature: Sequence[int] = (),
        is_variable: bool = False,
        sparsity: FileSparsity | None = None,
    ) -> int:
        """Add a tensor and return its index.

        Args:
            name: unique or not, as the format allows.
            shape: static extents.
            dtype: a numpy type that the format has, "int4" for values of 4 bits, two in a byte, or
                "resource" for the handle of a variable.
            data: values of a constant; None for an activation.
            scales: quantisation scales, one, or one per slice along `axis`.
            zero_points: as many as `scales`; zeros if left out.
            axis: the dimension that several scales run along; needed with more than one scale.
            shape_signature: the shape with -1 for each extent that may change.
            is_variable: whether the tensor keeps its value between invocations.
            sparsity: how data that is a vector of some of its elements is stored.

        Raises:
            UsageError: the type is not in the format, or data or scales do not fit the shape.
        """
        where = f"tensor {name!r}"
        extents = tuple(int(extent) for extent in shape)
        scale_values, zero_values = _quantization(scales, zero_points, axis, extents, where)
        self._tensors.append(
            _Tensor(
                name=name,
                shape=extents,
                type=_tensor_type(dtype, where),
                buffer=0
                if data is None
                else self._add_buffer(data, dtype, np.shape(data) if sparsity else extents, where),
                scales=scale_values,
                zero_points=zero_values,
                axis=axis or 0,
                shape_signature=tuple(int(extent) for extent in shape_signature),
                is_variable=is_variable,
                sparsity=sparsity,
            )
        )
        return len(self._tensors) - 1

    def operator(
        self,
        code: BuiltinOperator,
        inputs: Sequence[int],
        outputs: Sequence[int],
        options: Options | None = None,
        *,
        version: int | None = None,
    ) -> None:
        """Add an operator after those already there.

        Args:
            code: the operator.
            inputs: tensor indices; `OPTIONAL_INPUT` for one that is left out.
            outputs: tensor indices.
            options: the operator's option table; its defaults if left out.
            version: overrides the version that types and options ask for.

        Raises:
            UsageError: an index is unknown, or the options belong to another operator.
        """
        where = f"operator {code.name}"
        table = OPTIONS_OF[code]
        chosen = table() if options is None else options
        if type(chosen) is not table:
            raise UsageError(
                f"options are {type(chosen).__name__}", where=where, legal=table.__name__
            )
        sources = [self._operand(index, where) for index in inputs]
        results = [self._operand(index, where) for index in outputs]
        if version is None:
            written = [operand for operand in results if operand is not None]
            version = operator_version(code, sources, written, chosen)
        index = self._code_index(_OperatorCode(int(code), version))
        self._operators.append(_Operator(index, tuple(inputs), tuple(outputs), chosen, code.table))

    def custom_operator(
        self,
        name: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        custom_options: bytes = b"",
    ) -> None:
        """Add an operator that is not built in; `custom_options` are opaque bytes."""
        for index in (*inputs, *outputs):
            self._operand(index, f"custom operator {name!r}")
        code_index = self._code_index(_OperatorCode(_CUSTOM_CODE, 1, name))
        self._operators.append(
            _Operator(code_index, tuple(inputs), tuple(outputs), Options(), 0, custom_options)
        )

    def build(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        """Return the model file with the given tensors as the model's inputs and outputs."""
        self.define(inputs, outputs)
        file = self._file
        fb = flatbuffers.Builder(1024)
        buffers = _offset_vector(fb, [_write_buffer(fb, data) for data in file.buffers])
        codes = _offset_vector(fb, [_write_code(fb, code) for code in file.codes])
        written = [graph._write_subgraph(fb) for graph in file.graphs]
        subgraphs = _offset_vector(fb, written)
        signatures = [_write_signature(fb, *signature) for signature in file.signatures]
        named = _offset_vector(fb, signatures) if signatures else 0
        entries = [_write_metadata(fb, *entry) for entry in file.metadata]
        metadata = _offset_vector(fb, entries) if entries else 0
        description = fb.CreateString(self._description)
        model = _table(
            fb,
            (0, _Wire.UINT32, SCHEMA_VERSION),
            (1, _Wire.OFFSET, codes),
            (2, _Wire.OFFSET, subgraphs),
            (3, _Wire.OFFSET, description),
            (4, _Wire.OFFSET, buffers),
            *([(6, _Wire.OFFSET, metadata)] if metadata else []),
            *([(7, _Wire.OFFSET, named)] if named else []),
        )
        fb.Finish(model, file_identifier=FILE_IDENTIFIER)
        return bytes(fb.Output())

    def _operand(self, index: int, where: str, optional: bool = True) -> Operand | None:
        if optional and index == OPTIONAL_INPUT:
            return None
        if not 0 <= index < len(self._tensors):
            raise UsageError(
                f"there is no tensor {index}",
                where=where,
                legal=f"0 to {len(self._tensors) - 1}",
                fix="use the index that tensor() returned",
            )
        return self._tensors[index].operand()

    def _code_index(self, code: _OperatorCode) -> int:
        codes = self._file.codes
        if code not in codes:
            codes.append(code)
        return codes.index(code)

    def _add_buffer(
        self,
        data: npt.ArrayLike,
        dtype: npt.DTypeLike,
        shape: tuple[int, ...],
        where: str,
    ) -> int:
        values, kind = np.asarray(data), np.dtype(np.int8 if dtype == "int4" else dtype)
        if values.shape != shape:
            raise UsageError(
                f"data has shape {values.shape}", where=where, legal=f"the tensor's shape {shape}"
            )
        stored = values.astype(kind.newbyteorder("<"))
        if kind.kind != "f" and not np.array_equal(stored, values):
            raise UsageError(f"data does not fit {kind}", where=where)
        if dtype == "int4":
            pairs = np.pad(values.reshape(-1), (0, values.size % 2)).reshape(-1, 2) & 15
            stored = (pairs[:, 0] | pairs[:, 1] << 4).astype(np.uint8)
        self._file.buffers.append(stored.tobytes())
        return len(self._file.buffers) - 1

    def _write_subgraph(self, fb: flatbuffers.Builder) -> int:
        inputs, outputs = self._ports
        tensors = _offset_vector(fb, [_write_tensor(fb, tensor) for tensor in self._tensors])
        input_vector = _vector(fb, inputs, np.int32)
        output_vector = _vector(fb, outputs, np.int32)
        operators = _offset_vector(fb, [_write_operator(fb, op) for op in self._operators])
        name = fb.CreateString(self._name)
        return _table(
            fb,
            (0, _Wire.OFFSET, tensors),
            (1, _Wire.OFFSET, input_vector),
            (2, _Wire.OFFSET, output_vector),
            (3, _Wire.OFFSET, operators),
            (4, _Wire.OFFSET, name),
        )


def _tensor_type(dtype: npt.DTypeLike | Literal["resource", "int4"], where: str) -> TfliteType:
    name = str(dtype) if dtype in ("resource", "int4") else np.dtype(dtype).name
    try:
        return TfliteType[name.upper()]
    except KeyError:
        legal = ", ".join(member.name.lower() for member in TfliteType)
        raise UsageError(f"type {name} cannot be stored", where=where, legal=legal) from None


def _quantization(
    scales: npt.ArrayLike | None,
    zero_points: npt.ArrayLike | None,
    axis: int | None,
    shape: tuple[int, ...],
    where: str,
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Check scales, zero points and axis against the shape, and make them tuples."""
    if scales is None:
        if zero_points is not None or axis is not None:
            raise UsageError("zero points or an axis without scales", where=where)
        return (), ()
    scale_values = tuple(float(scale) for scale in np.atleast_1d(np.asarray(scales)))
    if zero_points is None:
        zero_values = (0,) * len(scale_values)
    else:
        zero_values = tuple(int(zero) for zero in np.atleast_1d(np.asarray(zero_points)))
    if len(zero_values) != len(scale_values):
        raise UsageError(
            f"{len(zero_values)} zero points for {len(scale_values)} scales", where=where
        )
    if axis is None and len(scale_values) != 1:
        raise UsageError(
            f"{len(scale_values)} scales without an axis", where=where, fix="pass axis"
        )
    if axis is not None and not (0 <= axis < len(shape) and len(scale_values) in (1, shape[axis])):
        raise UsageError(
            f"{len(scale_values)} scales along axis {axis} of shape {shape}",
            where=where,
            legal="one scale, or one per slice along an axis of the tensor",
        )
    return scale_values, zero_values


def _table(fb: flatbuffers.Builder, *entries: _Entry) -> int:
    """Write a table; what its offsets refer to must have been written before."""
    fb.StartObject(max((slot for slot, _, _ in entries), default=-1) + 1)
    for slot, wire, value in entries:
        # Scalars are stored even if they equal the schema's default, which then need not be known.
        absent = 0 if wire is _Wire.OFFSET else None
        getattr(fb, f"Prepend{wire.value}Slot")(slot, value, absent)
    return int(fb.EndObject())


def _vector(fb: flatbuffers.Builder, values: Sequence[float], dtype: npt.DTypeLike) -> int:
    return int(fb.CreateNumpyVector(np.asarray(values, dtype=dtype)))


def _offset_vector(fb: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    fb.StartVector(4, len(offsets), 4)
    # The file is written from its end, so the last element comes first.
    for offset in reversed(offsets):
        fb.PrependUOffsetTRelative(offset)
    return int(fb.EndVector())


def _write_buffer(fb: flatbuffers.Builder, data: bytes) -> int:
    if not data:
        return _table(fb)
    # Interpreters use weights in place through typed pointers, so the bytes must lie aligned.
    # CreateByteVector aligns to four only, but keeps what a wider Prep set up for its length.
    fb.Prep(_BUFFER_ALIGNMENT, len(data))
    vector = int(fb.CreateByteVector(data))
    return _table(fb, (0, _Wire.OFFSET, vector))


def _write_code(fb: flatbuffers.Builder, code: _OperatorCode) -> int:
    name = fb.CreateString(code.custom_name) if code.custom_name else 0
    return _table(
        fb,
        # Codes were one byte once; old readers look at slot 0, new ones take the larger of both.
        (0, _Wire.INT8, min(code.code, _LAST_ONE_BYTE_CODE)),
        (1, _Wire.OFFSET, name),
        (2, _Wire.INT32, code.version),
        (3, _Wire.INT32, code.code),
    )


def _write_tensor(fb: flatbuffers.Builder, tensor: _Tensor) -> int:
    name = fb.CreateString(tensor.name)
    shape = _vector(fb, tensor.shape, np.int32)
    signature = _vector(fb, tensor.shape_signature, np.int32) if tensor.shape_signature else 0
    quantization = 0
    if tensor.scales:
        scales = _vector(fb, tensor.scales, np.float32)
        zero_points = _vector(fb, tensor.zero_points, np.int64)
        quantization = _table(
            fb,
            (2, _Wire.OFFSET, scales),
            (3, _Wire.OFFSET, zero_points),
            (6, _Wire.INT32, tensor.axis),
        )
    sparsity = 0 if tensor.sparsity is None else _write_sparsity(fb, tensor.sparsity)
    return _table(
        fb,
        (0, _Wire.OFFSET, shape),
        (1, _Wire.INT8, tensor.type),
        (2, _Wire.UINT32, tensor.buffer),
        (3, _Wire.OFFSET, name),
        (4, _Wire.OFFSET, quantization),
        (5, _Wire.BOOL, tensor.is_variable),
        *([(6, _Wire.OFFSET, sparsity)] if sparsity else []),
        (7, _Wire.OFFSET, signature),
        (8, _Wire.BOOL, True),
    )


def _write_sparsity(fb: flatbuffers.Builder, sparsity: FileSparsity) -> int:
    axes = []
    for axis in sparsity.axes:
        if axis.is_dense:
            axes.append(_table(fb, (1, _Wire.INT32, axis.size)))
            continue
        vectors = [
            _table(fb, (0, _Wire.OFFSET, _vector(fb, numbers, np.int32)))
            for numbers in (axis.begins, axis.places)
        ]
        axes.append(
            _table(
                fb,
                (0, _Wire.INT8, 1),
                (2, _Wire.UINT8, 1),
                (3, _Wire.OFFSET, vectors[0]),
                (4, _Wire.UINT8, 1),
                (5, _Wire.OFFSET, vectors[1]),
            )
        )
    dimensions = _offset_vector(fb, axes)
    order = _vector(fb, sparsity.order, np.int32)
    blocked = _vector(fb, sparsity.blocked, np.int32)
    return _table(
        fb, (0, _Wire.OFFSET, order), (1, _Wire.OFFSET, blocked), (2, _Wire.OFFSET, dimensions)
    )


def _write_operator(fb: flatbuffers.Builder, operator: _Operator) -> int:
    inputs = _vector(fb, operator.inputs, np.int32)
    outputs = _vector(fb, operator.outputs, np.int32)
    options = _write_options(fb, operator.options) if operator.table else 0
    custom = fb.CreateByteVector(operator.custom_options) if operator.custom_options else 0
    return _table(
        fb,
        (0, _Wire.UINT32, operator.code_index),
        (1, _Wire.OFFSET, inputs),
        (2, _Wire.OFFSET, outputs),
        (3, _Wire.UINT8, operator.table),
        (4, _Wire.OFFSET, options),
        (5, _Wire.OFFSET, custom),
    )


def _write_signature(fb: flatbuffers.Builder, key: str, graph: int) -> int:
    name = fb.CreateString(key)
    return _table(fb, (2, _Wire.OFFSET, name), (4, _Wire.UINT32, graph))


def _write_metadata(fb: flatbuffers.Builder, name: str, buffer: int) -> int:
    text = fb.CreateString(name)
    return _table(fb, (0, _Wire.OFFSET, text), (1, _Wire.UINT32, buffer))


def _write_options(fb: flatbuffers.Builder, options: Options) -> int:
    entries: list[_Entry] = []
    kind: Any = type(options)
    types = _types(kind)
    for slot, entry in enumerate(fields(options), start=options.first_slot):
        value = getattr(options, entry.name)
        wire = _wire(types[entry.name])
        if wire is _Wire.OFFSET:
            # It lies outside its table and must be complete before the table starts.
            value = _write_outside(fb, value) if value else 0
        entries.append((slot, wire, value))
    return _table(fb, *entries)


@cache
def _types(kind: type[Options]) -> Mapping[str, Any]:
    """Return the annotations of a class, resolved once."""
    return MappingProxyType(get_type_hints(kind))


def _write_outside(fb: flatbuffers.Builder, value: str | Sequence[int]) -> int:
    if isinstance(value, str):
        return int(fb.CreateString(value))
    return _vector(fb, value, np.int32)


def _wire(annotation: object) -> _Wire:
    """How a field of an option table is stored, from the field's type."""
    if get_origin(annotation) is tuple or annotation is str:
        return _Wire.OFFSET
    assert isinstance(annotation, type)
    if issubclass(annotation, IntEnum):
        return _Wire.INT8
    return _WIRE_OF_SCALAR[annotation]
