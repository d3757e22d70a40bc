"""All operators, each with all that the package knows of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microtir.graph.operator import Operator
from microtir.operators import (
    activations,
    arithmetic,
    conversion,
    convolution,
    dense,
    movement,
    pooling,
    reduction,
    resize,
    softmax,
    streaming,
)
from microtir.operators.record import OperatorRecord, UserOperator

__all__ = ["OPERATORS", "OperatorRecord", "UserOperator", "record_of"]

OPERATORS: tuple[OperatorRecord, ...] = (
    *convolution.RECORDS,
    *dense.RECORDS,
    *pooling.RECORDS,
    *reduction.RECORDS,
    *arithmetic.RECORDS,
    *activations.RECORDS,
    *softmax.RECORDS,
    *movement.RECORDS,
    *resize.RECORDS,
    *conversion.RECORDS,
    *streaming.RECORDS,
)
"""Every operator of the package, in the order of the docs."""

_BY_CLASS: Mapping[type[Operator], OperatorRecord] = MappingProxyType(
    {record.op: record for record in OPERATORS}
)


def record_of(op: Operator) -> OperatorRecord:
    """Return the record of an operator, of the package or of the user."""
    return op.own_record() if isinstance(op, UserOperator) else _BY_CLASS[type(op)]
