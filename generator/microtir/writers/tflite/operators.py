"""Write operators and their codes: which tensors they take, and their tables of options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from types import MappingProxyType
from typing import Any, get_origin

import flatbuffers
import numpy as np

from microtir.operators.common.tflite_schema import Options, types_of
from microtir.writers.tflite.flatbuffer import Entry, Wire, table, vector

CUSTOM_CODE = 32

_LAST_ONE_BYTE_CODE = 127
_WIRE_OF_SCALAR: Mapping[type, Wire] = MappingProxyType(
    {bool: Wire.BOOL, int: Wire.INT32, float: Wire.FLOAT32}
)


@dataclass(frozen=True, slots=True)
class OperatorCode:
    """Kind of an operator, and the version of it that a reader must know."""

    code: int
    version: int
    custom_name: str = ""


@dataclass(frozen=True, slots=True)
class WrittenOperator:
    """An operator of a subgraph; tensors are named by their indices."""

    code_index: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Options
    table: int = 0
    custom_options: bytes = b""
    intermediates: tuple[int, ...] = ()


def write_code(fb: flatbuffers.Builder, code: OperatorCode) -> int:
    """Write what operators of a kind share."""
    name = fb.CreateString(code.custom_name) if code.custom_name else 0
    return table(
        fb,
        # Codes were one byte once; old readers look at slot 0, new ones take the larger of both.
        (0, Wire.INT8, min(code.code, _LAST_ONE_BYTE_CODE)),
        (1, Wire.OFFSET, name),
        (2, Wire.INT32, code.version),
        (3, Wire.INT32, code.code),
    )


def write_operator(fb: flatbuffers.Builder, operator: WrittenOperator) -> int:
    """Write one operator with its options."""
    inputs = vector(fb, operator.inputs, np.int32)
    outputs = vector(fb, operator.outputs, np.int32)
    options = _write_options(fb, operator.options) if operator.table else 0
    between = vector(fb, operator.intermediates, np.int32) if operator.intermediates else 0
    custom = fb.CreateByteVector(operator.custom_options) if operator.custom_options else 0
    return table(
        fb,
        (0, Wire.UINT32, operator.code_index),
        (1, Wire.OFFSET, inputs),
        (2, Wire.OFFSET, outputs),
        (3, Wire.UINT8, operator.table),
        (4, Wire.OFFSET, options),
        (5, Wire.OFFSET, custom),
        *([(8, Wire.OFFSET, between)] if between else []),
    )


def _write_options(fb: flatbuffers.Builder, options: Options) -> int:
    entries: list[Entry] = []
    kind: Any = type(options)
    types = types_of(kind)
    for slot, entry in enumerate(fields(options), start=options.first_slot):
        value = getattr(options, entry.name)
        wire = _wire(types[entry.name])
        if wire is Wire.OFFSET:
            # It lies outside its table and must be complete before the table starts.
            value = _write_outside(fb, value) if value else 0
        entries.append((slot, wire, value))
    return table(fb, *entries)


def _write_outside(fb: flatbuffers.Builder, value: str | Sequence[int]) -> int:
    if isinstance(value, str):
        return int(fb.CreateString(value))
    return vector(fb, value, np.int32)


def _wire(annotation: object) -> Wire:
    """Return how a field of an option table is stored, from the type of the field."""
    if get_origin(annotation) is tuple or annotation is str:
        return Wire.OFFSET
    assert isinstance(annotation, type)
    if issubclass(annotation, IntEnum):
        return Wire.INT8
    return _WIRE_OF_SCALAR[annotation]
