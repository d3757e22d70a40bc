"""The tables of TFLite operators that microtir reads, from the records of its operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from microtir.errors import UsageError
from microtir.frontend.tflite_subgraphs import CONTROL_OPTIONS
from microtir.frontend.tflite_variables import VARIABLE_OPTIONS
from microtir.operators import OPERATORS, OperatorRecord
from microtir.operators.common import tflite_schema
from microtir.operators.common.tflite_operands import TfliteReader

Readers: TypeAlias = Mapping[int | str, TfliteReader]
"""Readers by the schema's code of the operator; those of custom operators by their name."""

READERS: Readers = MappingProxyType(
    {reader.code: reader for record in OPERATORS for reader in record.tflite}
)
"""Each operator with its reader, in the order of the docs."""

OPTIONS_OF: Mapping[tflite_schema.BuiltinOperator, type[tflite_schema.Options]] = MappingProxyType(
    {
        **VARIABLE_OPTIONS,
        **CONTROL_OPTIONS,
        tflite_schema.BuiltinOperator.DENSIFY: tflite_schema.Options,
        **{
            reader.code: reader.options
            for reader in READERS.values()
            if isinstance(reader.code, tflite_schema.BuiltinOperator)
        },
    }
)
"""The table of options of each operator that is read."""


def readers_with(operators: Sequence[OperatorRecord]) -> Readers:
    """Return the readers of the package and of operators of the user.

    Raises:
        UsageError: two of them read the same operator.
    """
    readers = dict(READERS)
    for reader in (reader for record in operators for reader in record.tflite):
        if reader.code in readers:
            name = reader.code if isinstance(reader.code, str) else reader.code.name
            raise UsageError(f"two operators are called '{name}'", where="from_tflite(operators)")
        readers[reader.code] = reader
    return MappingProxyType(readers)
