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
from dataclasses import dataclass, field
from typing import Literal

import flatbuffers
import numpy as np
import numpy.typing as npt

from microtir.errors import UsageError
from microtir.frontend.tflite_file import FILE_IDENTIFIER, SCHEMA_VERSION
from microtir.frontend.tflite_operators import OPTIONS_OF
from microtir.frontend.tflite_sparsity import FileSparsity
from microtir.operators.common.tflite_schema import BuiltinOperator, Options
from microtir.writers.tflite.flatbuffer import Wire, offset_vector, table, vector
from microtir.writers.tflite.operators import (
    CUSTOM_CODE,
    OperatorCode,
    WrittenOperator,
    write_code,
    write_operator,
)
from microtir.writers.tflite.tensors import (
    WrittenTensor,
    quantization,
    stored_bytes,
    tensor_type,
    write_buffer,
    write_tensor,
)
from microtir.writers.tflite.versions import Operand, operator_version

OPTIONAL_INPUT = -1
"""Tensor index that stands for an optional input that is left out, such as a bias."""


@dataclass(frozen=True, slots=True)
class _Signature:
    """A name for a subgraph, and those of its inputs and outputs with their indices."""

    key: str
    graph: int
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]


@dataclass(slots=True)
class _File:
    """Buffers, codes and names that the subgraphs of a file share."""

    # Buffer 0 is empty by convention: every tensor without data refers to it.
    buffers: list[bytes] = field(default_factory=lambda: [b""])
    codes: list[OperatorCode] = field(default_factory=list)
    graphs: list[TfliteBuilder] = field(default_factory=list)
    signatures: list[_Signature] = field(default_factory=list)
    metadata: list[tuple[str, int]] = field(default_factory=list)
    # Numbers of the buffers that tensors share; None where each constant has one of its own.
    numbers: dict[bytes, int] | None = None


class TfliteBuilder:
    """Collects tensors and operators in execution order; `build` gives the file's bytes.

    Args:
        description: of the file.
        name: of the subgraph.
        shares_buffers: whether constants of equal bytes have one buffer.
        file: what a further subgraph belongs to.
    """

    def __init__(
        self,
        description: str = "microtir",
        *,
        name: str = "main",
        shares_buffers: bool = False,
        file: _File | None = None,
    ) -> None:
        self._description = description
        self._name = name
        self._tensors: list[WrittenTensor] = []
        self._file = file or _File(numbers={} if shares_buffers else None)
        self._operators: list[WrittenOperator] = []
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

    def signature(
        self,
        key: str,
        inputs: Mapping[str, int] | None = None,
        outputs: Mapping[str, int] | None = None,
    ) -> None:
        """Give the subgraph a name by which callers ask for it, and names to its tensors."""
        names = (tuple((inputs or {}).items()), tuple((outputs or {}).items()))
        self._file.signatures.append(_Signature(key, self.number, *names))

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
        scale_values, zero_values = quantization(scales, zero_points, axis, extents, where)
        self._tensors.append(
            WrittenTensor(
                name=name,
                shape=extents,
                type=tensor_type(dtype, where),
                buffer=0
                if data is None
                else self._buffer(
                    stored_bytes(data, dtype, np.shape(data) if sparsity else extents, where)
                ),
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
        intermediates: Sequence[int] = (),
    ) -> None:
        """Add an operator after those already there.

        Args:
            code: the operator.
            inputs: tensor indices; `OPTIONAL_INPUT` for one that is left out.
            outputs: tensor indices.
            options: the operator's option table; its defaults if left out.
            version: overrides the version that types and options ask for.
            intermediates: tensor indices of what the operator has in between.

        Raises:
            UsageError: an index is unknown, or the options belong to another operator.
        """
        where = f"operator {code.name}"
        kind = OPTIONS_OF[code]
        chosen = kind() if options is None else options
        if type(chosen) is not kind:
            raise UsageError(
                f"options are {type(chosen).__name__}", where=where, legal=kind.__name__
            )
        sources = [self._operand(index, where) for index in inputs]
        results = [self._operand(index, where) for index in outputs]
        if version is None:
            written = [operand for operand in results if operand is not None]
            version = operator_version(code, sources, written, chosen)
        index = self._code_index(OperatorCode(int(code), version))
        self._operators.append(
            WrittenOperator(
                index, tuple(inputs), tuple(outputs), chosen, code.table,
                intermediates=tuple(intermediates),
            )
        )  # fmt: skip

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
        code_index = self._code_index(OperatorCode(CUSTOM_CODE, 1, name))
        self._operators.append(
            WrittenOperator(code_index, tuple(inputs), tuple(outputs), Options(), 0, custom_options)
        )

    def build(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        """Return the model file with the given tensors as the model's inputs and outputs."""
        self.define(inputs, outputs)
        file = self._file
        fb = flatbuffers.Builder(1024)
        buffers = offset_vector(fb, [write_buffer(fb, data) for data in file.buffers])
        codes = offset_vector(fb, [write_code(fb, code) for code in file.codes])
        written = [graph._write_subgraph(fb) for graph in file.graphs]
        subgraphs = offset_vector(fb, written)
        signatures = [_write_signature(fb, signature) for signature in file.signatures]
        named = offset_vector(fb, signatures) if signatures else 0
        entries = [_write_metadata(fb, *entry) for entry in file.metadata]
        metadata = offset_vector(fb, entries) if entries else 0
        description = fb.CreateString(self._description)
        model = table(
            fb,
            (0, Wire.UINT32, SCHEMA_VERSION),
            (1, Wire.OFFSET, codes),
            (2, Wire.OFFSET, subgraphs),
            (3, Wire.OFFSET, description),
            (4, Wire.OFFSET, buffers),
            *([(6, Wire.OFFSET, metadata)] if metadata else []),
            *([(7, Wire.OFFSET, named)] if named else []),
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
                fix="number tensors as they were added",
            )
        return self._tensors[index].operand()

    def _code_index(self, code: OperatorCode) -> int:
        codes = self._file.codes
        if code not in codes:
            codes.append(code)
        return codes.index(code)

    def _buffer(self, data: bytes) -> int:
        """Return the number of the buffer that holds the bytes of a constant."""
        buffers, numbers = self._file.buffers, self._file.numbers
        if numbers is not None and data in numbers:
            return numbers[data]
        buffers.append(data)
        if numbers is not None:
            numbers[data] = len(buffers) - 1
        return len(buffers) - 1

    def _write_subgraph(self, fb: flatbuffers.Builder) -> int:
        inputs, outputs = self._ports
        tensors = offset_vector(fb, [write_tensor(fb, tensor) for tensor in self._tensors])
        input_vector = vector(fb, inputs, np.int32)
        output_vector = vector(fb, outputs, np.int32)
        operators = offset_vector(fb, [write_operator(fb, op) for op in self._operators])
        name = fb.CreateString(self._name)
        return table(
            fb,
            (0, Wire.OFFSET, tensors),
            (1, Wire.OFFSET, input_vector),
            (2, Wire.OFFSET, output_vector),
            (3, Wire.OFFSET, operators),
            (4, Wire.OFFSET, name),
        )


def _write_signature(fb: flatbuffers.Builder, signature: _Signature) -> int:
    maps = [_write_names(fb, names) for names in (signature.inputs, signature.outputs)]
    name = fb.CreateString(signature.key)
    return table(
        fb,
        *((slot, Wire.OFFSET, offset) for slot, offset in enumerate(maps) if offset),
        (2, Wire.OFFSET, name),
        (4, Wire.UINT32, signature.graph),
    )


def _write_names(fb: flatbuffers.Builder, names: Sequence[tuple[str, int]]) -> int:
    entries = []
    for name, index in names:
        text = fb.CreateString(name)
        entries.append(table(fb, (0, Wire.OFFSET, text), (1, Wire.UINT32, index)))
    return offset_vector(fb, entries) if entries else 0


def _write_metadata(fb: flatbuffers.Builder, name: str, buffer: int) -> int:
    text = fb.CreateString(name)
    return table(fb, (0, Wire.OFFSET, text), (1, Wire.UINT32, buffer))
