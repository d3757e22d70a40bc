"""Write TFLite model files: tensors, operators, one subgraph.

    builder = TfliteBuilder()
    x = builder.tensor("x", (1, 8), np.float32)
    y = builder.tensor("y", (1, 8), np.float32)
    builder.operator(BuiltinOperator.RELU, [x], [y])
    model = builder.build([x], [y])

The same calls give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import flatbuffers  # type: ignore[import-untyped,unused-ignore]
import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from .tflite_schema import (
    FILE_IDENTIFIER,
    OPTIONS_OF,
    SCHEMA_VERSION,
    BuiltinOperator,
    Options,
    Slot,
    TensorType,
    Wire,
)
from .tflite_versions import Operand, operator_version

OPTIONAL_INPUT = -1
"""Tensor index that stands for an optional input that is left out, such as a bias."""

_LAST_ONE_BYTE_CODE = 127
_BUFFER_ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class _Tensor:
    name: str
    shape: tuple[int, ...]
    type: TensorType
    buffer: int
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int
    shape_signature: tuple[int, ...]
    is_variable: bool

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
    custom_options: bytes = b""


class TfliteBuilder:
    """Collects tensors and operators in execution order; `build` gives the file's bytes."""

    def __init__(self, description: str = "microtir") -> None:
        self._description = description
        self._tensors: list[_Tensor] = []
        # Buffer 0 is empty by convention: every tensor without data refers to it.
        self._buffers: list[bytes] = [b""]
        self._codes: list[_OperatorCode] = []
        self._operators: list[_Operator] = []

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        dtype: npt.DTypeLike,
        data: npt.ArrayLike | None = None,
        scales: npt.ArrayLike | None = None,
        zero_points: npt.ArrayLike | None = None,
        axis: int | None = None,
        *,
        shape_signature: Sequence[int] = (),
        is_variable: bool = False,
    ) -> int:
        """Add a tensor and return its index.

        Args:
            name: unique or not, as the format allows.
            shape: static extents.
            dtype: a numpy type that the format has.
            data: values of a constant; None for an activation.
            scales: quantisation scales, one, or one per slice along `axis`.
            zero_points: as many as `scales`; zeros if left out.
            axis: the dimension that several scales run along; needed with more than one scale.
            shape_signature: the shape with -1 for each extent that may change.
            is_variable: whether the tensor keeps its value between invocations.

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
                type=_tensor_type(np.dtype(dtype), where),
                buffer=self._add_buffer(data, np.dtype(dtype), extents, where),
                scales=scale_values,
                zero_points=zero_values,
                axis=axis or 0,
                shape_signature=tuple(int(extent) for extent in shape_signature),
                is_variable=is_variable,
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
        self._operators.append(_Operator(index, tuple(inputs), tuple(outputs), chosen))

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
            _Operator(code_index, tuple(inputs), tuple(outputs), Options(), custom_options)
        )

    def build(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        """Return the model file with the given tensors as the model's inputs and outputs."""
        for index in (*inputs, *outputs):
            self._operand(index, "model inputs and outputs", optional=False)
        fb = flatbuffers.Builder(1024)
        buffers = _offset_vector(fb, [_write_buffer(fb, data) for data in self._buffers])
        codes = _offset_vector(fb, [_write_code(fb, code) for code in self._codes])
        subgraph = self._write_subgraph(fb, inputs, outputs)
        subgraphs = _offset_vector(fb, [subgraph])
        description = fb.CreateString(self._description)
        model = _table(
            fb,
            8,
            lambda: fb.PrependUint32Slot(0, SCHEMA_VERSION, 0),
            lambda: fb.PrependUOffsetTRelativeSlot(1, codes, 0),
            lambda: fb.PrependUOffsetTRelativeSlot(2, subgraphs, 0),
            lambda: fb.PrependUOffsetTRelativeSlot(3, description, 0),
            lambda: fb.PrependUOffsetTRelativeSlot(4, buffers, 0),
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
        if code not in self._codes:
            self._codes.append(code)
        return self._codes.index(code)

    def _add_buffer(
        self,
        data: npt.ArrayLike | None,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        where: str,
    ) -> int:
        if data is None:
            return 0
        values = np.asarray(data)
        if values.shape != shape:
            raise UsageError(
                f"data has shape {values.shape}", where=where, legal=f"the tensor's shape {shape}"
            )
        stored = values.astype(dtype.newbyteorder("<"))
        if not np.array_equal(stored, values, equal_nan=dtype.kind == "f"):
            if dtype.kind != "f":
                raise UsageError(f"data does not fit {dtype}", where=where)
        self._buffers.append(stored.tobytes())
        return len(self._buffers) - 1

    def _write_subgraph(self, fb: Any, inputs: Sequence[int], outputs: Sequence[int]) -> int:
        tensors = _offset_vector(fb, [_write_tensor(fb, tensor) for tensor in self._tensors])
        input_vector = _int32_vector(fb, inputs)
        output_vector = _int32_vector(fb, outputs)
        operators = _offset_vector(fb, [_write_operator(fb, op) for op in self._operators])
        name = fb.CreateString("main")
        return _table(
            fb,
            6,
            lambda: fb.PrependUOffsetTRelativeSlot(0, tensors, 0),
            lambda: fb.PrependUOffsetTRelativeSlot(1, input_vector, 0),
            lambda: fb.PrependUOffsetTRelativeSlot(2, output_vector, 0),
            lambda: fb.PrependUOffsetTRelativeSlot(3, operators, 0),
            lambda: fb.PrependUOffsetTRelativeSlot(4, name, 0),
        )
