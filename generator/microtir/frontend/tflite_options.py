"""Option tables of a TFLite file into the dataclasses that readers of operators declare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields
from enum import IntEnum
from types import MappingProxyType
from typing import Any, TypeVar, get_origin

from microtir.errors import ModelFileError, UnsupportedModelError
from microtir.frontend.flatbuffer import FlatbufferTable, ScalarType
from microtir.frontend.tflite_file import FileOperator
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, types_of

OptionsT = TypeVar("OptionsT", bound=Options)

# A field that is not stored has the schema's default: zero, but for these.
_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {"dilation_w": 1, "dilation_h": 1, "pot_scale_int16": True}
)

_SCALARS: Mapping[type, ScalarType] = MappingProxyType(
    {bool: ScalarType.BOOL, int: ScalarType.INT32, float: ScalarType.FLOAT32}
)


def read_options(operator: FileOperator, kind: type[OptionsT], where: str) -> OptionsT:
    """Return the options of an operator, as a table of class `kind`; defaults where none is stored.

    Raises:
        ModelFileError: the stored table is another operator's, or a value is not in the schema.
        UnsupportedModelError: the table has fields that did not exist when microtir was written,
            and that may change what the operator does.
    """
    code = BuiltinOperator(operator.code)
    if not code.table:
        return kind()
    table = operator.options
    if table is not None and operator.options_type != code.table:
        raise ModelFileError(
            f"its options have the table number {operator.options_type}",
            where=where,
            legal=f"number {code.table} ({code.table_name})",
            fix="export the model again",
        )
    if table is not None:
        _refuse_unknown(table, kind, where)
    asked: Any = kind
    types = types_of(asked)
    values = {
        field.name: _value(table, slot, field, types[field.name], where)
        for slot, field in enumerate(fields(kind), start=kind.first_slot)
    }
    return kind(**values)


def _refuse_unknown(table: FlatbufferTable, kind: type[Options], where: str) -> None:
    known = kind.first_slot + len(fields(kind))
    unknown = [slot for slot in table.present() if slot >= known]
    if unknown:
        raise UnsupportedModelError(
            f"its options have the field {unknown[0]}, which this version does not know",
            where=where,
            legal=f"fields 0 to {known - 1}" if known else "no fields",
            fix="convert the model with an older converter, or use a newer microtir",
        )


def _value(
    table: FlatbufferTable | None, slot: int, field: Field[Any], annotation: Any, where: str
) -> Any:
    if get_origin(annotation) is tuple:
        return () if table is None else table.numbers(slot, "i4")
    assert isinstance(annotation, type)
    if annotation is str:
        return "" if table is None else table.string(slot)
    if issubclass(annotation, IntEnum):
        number = 0 if table is None else table.scalar(slot, ScalarType.INT8)
        return _member(annotation, number, field.name, where)
    kind = _SCALARS[annotation]
    default = _DEFAULTS.get(field.name, 0)
    return default if table is None else table.scalar(slot, kind, default)


def _member(kind: type[IntEnum], number: int, name: str, where: str) -> IntEnum:
    try:
        return kind(number)
    except ValueError:
        legal = ", ".join(member.name for member in kind)
        raise ModelFileError(
            f"its {name} is {number}", where=where, legal=legal, fix="export the model again"
        ) from None
