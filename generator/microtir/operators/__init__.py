"""All operators, each with all that the package knows of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microtir.graph.operator import Operator
from microtir.operators import (
    activations,
    argmax_pooling,
    arithmetic,
    attention,
    bits,
    block_dense,
    circular_buffer,
    conditions,
    control,
    conversion,
    convolution,
    convolution_3d,
    cumulation,
    dense,
    detection,
    division,
    filter_bank,
    framing,
    hybrid,
    indexing,
    matmul,
    movement,
    normalization,
    npu,
    pooling,
    ranking,
    rearrangement,
    recurrent,
    reduction,
    repetition,
    resize,
    selection,
    shapes,
    softmax,
    spectrum,
    state,
    streaming,
    support_vectors,
    transposed_convolution,
    trees,
    unary,
)
from microtir.operators.record import OperatorRecord, UserOperator

__all__ = ["OPERATORS", "OperatorRecord", "UserOperator", "record_of"]

OPERATORS: tuple[OperatorRecord, ...] = (
    *convolution.RECORDS,
    *transposed_convolution.RECORDS,
    *convolution_3d.RECORDS,
    *dense.RECORDS,
    *matmul.RECORDS,
    *block_dense.RECORDS,
    *pooling.RECORDS,
    *argmax_pooling.RECORDS,
    *reduction.RECORDS,
    *cumulation.RECORDS,
    *arithmetic.RECORDS,
    *division.RECORDS,
    *bits.RECORDS,
    *conditions.RECORDS,
    *selection.RECORDS,
    *activations.RECORDS,
    *unary.RECORDS,
    *softmax.RECORDS,
    *normalization.RECORDS,
    *movement.RECORDS,
    *repetition.RECORDS,
    *rearrangement.RECORDS,
    *indexing.RECORDS,
    *shapes.RECORDS,
    *ranking.RECORDS,
    *detection.RECORDS,
    *trees.RECORDS,
    *support_vectors.RECORDS,
    *circular_buffer.RECORDS,
    *framing.RECORDS,
    *spectrum.RECORDS,
    *filter_bank.RECORDS,
    *resize.RECORDS,
    *conversion.RECORDS,
    *streaming.RECORDS,
    *recurrent.RECORDS,
    *attention.RECORDS,
    *hybrid.RECORDS,
    *state.RECORDS,
    *control.RECORDS,
    *npu.RECORDS,
)
"""Every operator of the package, in the order of the docs."""

_BY_CLASS: Mapping[type[Operator], OperatorRecord] = MappingProxyType(
    {record.op: record for record in OPERATORS}
)


def record_of(op: Operator) -> OperatorRecord:
    """Return the record of an operator, of the package or of the user."""
    return op.own_record() if isinstance(op, UserOperator) else _BY_CLASS[type(op)]
