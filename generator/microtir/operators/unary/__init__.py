"""Functions of one element that are no activations, a row each."""

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.operators.common import quantization
from microtir.operators.common.elementwise_formula import scalar
from microtir.operators.common.elementwise_meaning import of_stored, real
from microtir.operators.common.tflite_schema import BuiltinOperator as Tflite
from microtir.operators.common.types import COMPUTED_16, equal_types
from microtir.operators.definition import Trait
from microtir.operators.elementwise import row
from microtir.operators.unary import definition as unary
from microtir.operators.unary import formula, meaning

_F32, _I8, _I16, _I32, _I64 = (
    DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64,
)  # fmt: skip
_OWN = quantization.OWN_SYMMETRIC_INT16

RECORDS = (
    row(unary.Abs, real(np.abs, meaning.quantized_abs), scalar(te.abs, formula.abs_stored),
        equal_types(_F32, _I8, _I16, _I32), quantization.QUANTIZED_OR_NOT_INT16,
        multipliers=unary.abs_multipliers, tflite=Tflite.ABS, onnx="Abs"),
    row(unary.Neg, real(np.negative, of_stored(np.negative)),
        scalar(lambda x: -x, lambda _node: formula.negated),
        equal_types(_F32, _I8, _I16, _I32, _I64),
        traits=(Trait.STORED,), tflite=Tflite.NEG, onnx="Neg"),
    row(unary.Sign, real(np.sign, of_stored(np.sign)),
        scalar(formula.sign, lambda _node: formula.sign), equal_types(_F32, _I32),
        tflite=Tflite.SIGN, onnx="Sign"),
    row(unary.Square, real(np.square), scalar(lambda x: x * x),
        tflite=Tflite.SQUARE),
    row(unary.Sqrt, real(np.sqrt, meaning.quantized_sqrt),
        scalar(te.sqrt, formula.sqrt_stored), COMPUTED_16, _OWN,
        tflite=Tflite.SQRT, onnx="Sqrt"),
    row(unary.Rsqrt, real(lambda x: 1.0 / np.sqrt(x), meaning.quantized_rsqrt),
        scalar(lambda x: te.const(1.0, _F32) / te.sqrt(x), formula.rsqrt_stored),
        COMPUTED_16, _OWN, multipliers=unary.rsqrt_multipliers, tflite=Tflite.RSQRT),
    row(unary.Exp, real(np.exp, meaning.quantized_by_table),
        scalar(te.exp, formula.table_stored), COMPUTED_16, _OWN,
        tflite=Tflite.EXP, onnx="Exp"),
    row(unary.Log, real(np.log, meaning.quantized_by_table),
        scalar(te.log, formula.table_stored), COMPUTED_16, _OWN,
        tflite=Tflite.LOG, onnx="Log"),
    row(unary.Erf, real(meaning.erf), scalar(formula.erf), onnx="Erf"),
    row(unary.Sin, real(np.sin), scalar(te.sin), tflite=Tflite.SIN, onnx="Sin"),
    row(unary.Cos, real(np.cos), scalar(te.cos),
        tflite=Tflite.COS, onnx="Cos"),
    row(unary.Floor, real(np.floor), scalar(te.floor), tflite=Tflite.FLOOR, onnx="Floor"),
    row(unary.Ceil, real(np.ceil), scalar(te.ceil), tflite=Tflite.CEIL, onnx="Ceil"),
    row(unary.Round, real(np.rint), scalar(te.round_half_to_even),
        tflite=Tflite.ROUND, onnx="Round"),
    row(unary.ZerosLike, real(np.zeros_like, of_stored(np.zeros_like)),
        scalar(formula.zero, lambda _node: formula.zero), equal_types(_F32, _I8, _I32, _I64),
        tflite=Tflite.ZEROS_LIKE),
)  # fmt: skip
