"""Read the attributes of custom operators that are maps with names, in FlexBuffers' format."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

from microtir.dtype import DType
from microtir.operators.common import tflite_operands, tflite_schema

_DAMAGE = (ValueError, TypeError, LookupError, ArithmeticError, struct.error, RecursionError)
"""Exceptions that reading damaged bytes can end in."""


@dataclass(frozen=True, slots=True)
class CustomOptions:
    """The map of a custom operator.  Only values that are asked for are looked at."""

    operands: tflite_operands.Operands
    values: Any  # what gives a value of a name

    @classmethod
    def of(cls, operands: tflite_operands.Operands) -> CustomOptions:
        """Return the options of an operator.

        Raises:
            ModelFileError: they are no map.
        """
        from flatbuffers import flexbuffers  # few models need it

        try:
            root = flexbuffers.GetRoot(bytearray(operands.custom_options))
            values = root.AsMap if root.IsMap else None
        except _DAMAGE:
            values = None
        if values is None:
            what = "its options are not a map of names"
            raise operands.malformed(what, "a map in FlexBuffers' format")
        return cls(operands, values)

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an integer, or a truth value as one."""
        number = self.number(name, default)
        if number != int(number):
            raise self.operands.malformed(f"its option {name} is {number}", "an integer")
        return int(number)

    def natural(self, name: str, least: int = 0, most: int = DType.INT32.max) -> int:
        """Return an integer in a range, by default one of int32 that is not negative."""
        value = self.integer(name)
        if not least <= value <= most:
            legal = f"{least} to {most}"
            raise self.operands.malformed(f"its option {name} is {value}", legal)
        return value

    def positive(self, name: str) -> int:
        """Return an integer from 1 on."""
        return self.natural(name, 1)

    def check_type(self) -> None:
        """Check that the option T, which chooses a kernel, names the type of the first input."""
        dtype, stated = self.operands.input(0).dtype, self.integer("T")
        expected = tflite_schema.TfliteType[dtype.value.upper()]
        if stated != expected:
            legal = f"{expected.value}, for {dtype.value}"
            raise self.operands.malformed(f"its option T is {stated}", legal)

    def number(self, name: str, default: float | None = None) -> float:
        """Return a finite number, or the default where there is none of that name."""
        try:
            value = self.values[name]
        except KeyError:
            value = None  # there is none
        except _DAMAGE:
            raise self._damaged(name) from None
        if value is None or value.IsNull:
            if default is None:
                raise self.operands.malformed(f"its option {name} is missing", "a number")
            return default
        try:
            number = float(value.AsBool if value.IsBool else value.AsFloat)
        except _DAMAGE:
            raise self._damaged(name) from None
        if not math.isfinite(number):
            raise self.operands.malformed(f"its option {name} is {number}", "a finite number")
        return number

    def _damaged(self, name: str) -> Exception:
        return self.operands.malformed(f"its option {name} is damaged", "a number")
