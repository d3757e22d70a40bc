"""Operators of the user whose attributes are the bytes that a model file has for them."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.operators.record import OperatorRecord, UserOperator


@dataclass(frozen=True, slots=True)
class Custom(UserOperator):
    """An operator of the user: a function, and the options that a model file has for it."""

    function: OperatorRecord
    options: bytes = b""

    def own_record(self) -> OperatorRecord:
        return self.function

    @property
    def label(self) -> str:
        return self.function.definition.label
