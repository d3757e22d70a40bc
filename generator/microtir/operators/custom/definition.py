"""Operators of the user whose attributes are the bytes that a model file has for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microtir.operators.record import OperatorRecord, UserOperator


@dataclass(frozen=True, slots=True)
class Custom(UserOperator):
    """An operator of the user.

    `options` are the bytes of the model file; `stem` is part of the names of functions in C.
    """

    name: ClassVar[str] = "custom"
    record: OperatorRecord
    options: bytes = b""
    stem: str = "custom"

    def own_record(self) -> OperatorRecord:
        """Return the record."""
        return self.record

    @property
    def label(self) -> str:
        """What names the layer's function in C."""
        return self.stem
