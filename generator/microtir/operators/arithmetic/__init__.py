"""Element-wise operators of two inputs and more, a row each."""

import operator
from functools import partial

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.operators.arithmetic import definition as arithmetic
from microtir.operators.arithmetic import formula, meaning, tflite
from microtir.operators.common import quantization, tflite_operands
from microtir.operators.common.elementwise_formula import broadcast, by_node
from microtir.operators.common.elementwise_meaning import plain, real
from microtir.operators.common.tflite_schema import BuiltinOperator as Tflite
from microtir.operators.common.tflite_schema import FusedOptions
from microtir.operators.common.types import equal_types
from microtir.operators.definition import ACTIVATIONS, Trait
from microtir.operators.elementwise import row

_F32, _I8, _I16, _I32 = DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32
_NUMBERS = equal_types(_F32, _I8, _I16, _I32, DType.INT64)
_OWN, _SYMMETRIC = quantization.OWN_IF_NARROW, quantization.OWN_IF_NARROW_SYMMETRIC_INT16

_two = partial(row, inputs=2)
_extremum = partial(
    _two, types=_NUMBERS, traits=(Trait.STORED,),
    limits="stored values are compared, whatever their scales",
)  # fmt: skip

RECORDS = (
    _two(arithmetic.Add, meaning.of_two(np.add, meaning.total),
         formula.of_two(operator.add, te.wrapping_add, formula.total), _NUMBERS, _OWN,
         multipliers=arithmetic.add_multipliers, sums=arithmetic.add_sums,
         limits=f"{ACTIVATIONS}; none in int32",
         tflite=Tflite.ADD, options=tflite.AddOptions,
         read=tflite.arithmetic(arithmetic.Add),
         write=tflite.write_arithmetic(tflite.AddOptions), onnx="Add"),
    _two(arithmetic.Sub, meaning.of_two(np.subtract, meaning.total),
         formula.of_two(operator.sub, te.wrapping_sub, formula.total), _NUMBERS, _OWN,
         multipliers=arithmetic.add_multipliers, sums=arithmetic.add_sums, limits=ACTIVATIONS,
         tflite=Tflite.SUB, options=tflite.SubOptions,
         read=tflite.arithmetic(arithmetic.Sub),
         write=tflite.write_arithmetic(tflite.SubOptions), onnx="Sub"),
    _two(arithmetic.Mul, meaning.of_two(np.multiply, meaning.product),
         formula.of_two(operator.mul, te.wrapping_mul, formula.product), _NUMBERS,
         quantization.unless_in_float(_SYMMETRIC),
         multipliers=arithmetic.mul_multipliers, sums=arithmetic.mul_sums, limits=ACTIVATIONS,
         tflite=Tflite.MUL, options=FusedOptions,
         read=tflite.arithmetic(arithmetic.Mul),
         write=tflite.write_arithmetic(FusedOptions), onnx="Mul"),
    _two(arithmetic.SquaredDifference, meaning.squared_difference,
         by_node(formula.squared_difference),
         equal_types(_F32, _I8, _I16, _I32), _SYMMETRIC,
         multipliers=arithmetic.difference_multipliers,
         tflite=Tflite.SQUARED_DIFFERENCE),
    row(arithmetic.AddN, meaning.add_n, by_node(formula.add_n),
        equal_types(_F32, _I8, _I32), quantization.EQUAL_INPUTS_IF_NARROW,
        inputs=(2, tflite_operands.MANY), shapes=arithmetic.add_n_shape,
        multipliers=arithmetic.add_n_multipliers, tflite=Tflite.ADD_N),
    _extremum(arithmetic.Minimum, plain(np.minimum), broadcast(te.minimum),
              tflite=Tflite.MINIMUM),
    _extremum(arithmetic.Maximum, plain(np.maximum), broadcast(te.maximum),
              tflite=Tflite.MAXIMUM),
    _two(arithmetic.Pow, real(np.power), broadcast(te.pow), tflite=Tflite.POW),
    _two(arithmetic.Atan2, real(np.arctan2), broadcast(te.atan2),
         tflite=Tflite.ATAN2),
)  # fmt: skip
