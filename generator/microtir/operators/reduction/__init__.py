"""Reductions over axes, a row each."""

from dataclasses import replace

import numpy as np

from microtir.dtype import DType
from microtir.operators.common import images, quantization
from microtir.operators.common.arrays import Meaning
from microtir.operators.common.formula import Formula, whole
from microtir.operators.common.problem import Rule
from microtir.operators.common.tflite_schema import BuiltinOperator as Tflite
from microtir.operators.common.types import converting, equal_types
from microtir.operators.definition import Definition
from microtir.operators.record import OperatorRecord
from microtir.operators.reduction import definition as reduction
from microtir.operators.reduction import formula, meaning, tflite

_F32, _I8, _I16, _I32, _I64 = (
    DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64,
)  # fmt: skip
_REDUCE, _FIND = (Formula(f, whole) for f in (formula.reduce, formula.position))
_ONE_IMAGE = images.unless_along_images(reduction.first_axis)


def _sum(op: type[reduction.Mean | reduction.Sum], code: Tflite, *dtypes: DType) -> OperatorRecord:
    definition = Definition(
        op,
        types=equal_types(*dtypes),
        quantization=quantization.OWN_IF_NARROW,
        shapes=reduction.reduced_shape,
        one_image=_ONE_IMAGE,
        multipliers=reduction.sum_multipliers,
        sums=reduction.sum_bounds,
        terms=reduction.reduced_elements,
        limits="constant axes",
    )
    return OperatorRecord(definition, meaning.sums, _REDUCE, (tflite.reduction(op, code),))


def _plain(
    op: type[reduction.Reduction],
    of_arrays: Meaning,
    code: Tflite,
    *dtypes: DType,
    scales: quantization.QuantizationRule = quantization.EQUAL,
    multipliers: Rule | None = None,
) -> OperatorRecord:
    definition = Definition(
        op,
        types=equal_types(*dtypes),
        quantization=scales,
        shapes=reduction.reduced_shape,
        one_image=_ONE_IMAGE,
        multipliers=multipliers,
        limits="constant axes",
    )
    return OperatorRecord(definition, of_arrays, _REDUCE, (tflite.reduction(op, code),))


def _place(op: type[reduction.ArgExtremum], code: Tflite) -> OperatorRecord:
    definition = Definition(
        op,
        types=converting(*((source, to) for to in (_I32, _I64) for source in (_F32, _I8))),
        quantization=replace(quantization.UNUSED, scales=quantization.Scales.OWN),
        shapes=reduction.position_shape,
        one_image=_ONE_IMAGE,
        limits="constant axis",
    )
    reader = tflite.position(op, code)
    return OperatorRecord(definition, meaning.arg_extremum, _FIND, (reader,))


RECORDS = (
    _sum(reduction.Mean, Tflite.MEAN, _F32, _I8, _I16),
    _sum(reduction.Sum, Tflite.SUM, _F32, _I8, _I16, _I32, _I64),
    _plain(reduction.ReduceMax, meaning.reduce_max, Tflite.REDUCE_MAX, _F32, _I8, _I16, _I32, _I64),
    _plain(reduction.ReduceMin, meaning.reduce_min, Tflite.REDUCE_MIN, _F32, _I8, _I16, _I32, _I64),
    _plain(
        reduction.ReduceProd,
        meaning.reduce_prod,
        Tflite.REDUCE_PROD,
        _F32,
        _I8,
        _I16,
        _I32,
        _I64,
        scales=quantization.OWN_IF_NARROW_SYMMETRIC_INT16,
        multipliers=reduction.product_multipliers,
    ),
    _plain(reduction.ReduceAll, meaning.logical(np.all), Tflite.REDUCE_ALL, DType.BOOL),
    _plain(reduction.ReduceAny, meaning.logical(np.any), Tflite.REDUCE_ANY, DType.BOOL),
    _place(reduction.ArgMax, Tflite.ARG_MAX),
    _place(reduction.ArgMin, Tflite.ARG_MIN),
)
