"""Activations, a row each."""

from functools import partial

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.operators.activations import definition as activations
from microtir.operators.activations import formula, meaning, tflite
from microtir.operators.common.attributes import Activation
from microtir.operators.common.elementwise_formula import by_node, scalar, scalar_by_node
from microtir.operators.common.elementwise_meaning import by_operator, real
from microtir.operators.common.quantization import OWN, OWN_SYMMETRIC_INT16
from microtir.operators.common.tflite_operands import TfliteReader
from microtir.operators.common.tflite_schema import BuiltinOperator as Tflite
from microtir.operators.common.types import COMPUTED, COMPUTED_16, TypeRule, TypeSignature
from microtir.operators.elementwise import row

_F32, _I8, _I16 = DType.FLOAT32, DType.INT8, DType.INT16
_PRELU = TypeRule((
    TypeSignature((_F32, _F32), _F32), TypeSignature((_I8, _I8), _I8),
    TypeSignature((_I16, _I8), _I16),
))  # fmt: skip
_relu = partial(TfliteReader, activations.Relu)

RECORDS = (
    row(activations.Relu, by_operator(meaning.relu, meaning.quantized_relu),
        scalar_by_node(formula.relu, formula.relu_of_int16), COMPUTED_16, OWN_SYMMETRIC_INT16,
        multipliers=activations.relu_multipliers,
        tflite=(
            _relu(Tflite.RELU, tflite.relu(Activation.RELU), moved=tflite.RELU,
                  write=tflite.write_relu(Activation.RELU)),
            _relu(Tflite.RELU6, tflite.relu(Activation.RELU6), moved=tflite.RELU6,
                  write=tflite.write_relu(Activation.RELU6)),
            _relu(Tflite.RELU_N1_TO_1, tflite.relu(Activation.RELU_N1_TO_1),
                  write=tflite.write_relu(Activation.RELU_N1_TO_1)),
        )),
    row(activations.LeakyRelu, by_operator(meaning.leaky_relu, meaning.quantized_leaky_relu),
        scalar_by_node(formula.leaky_relu, formula.leaky_relu_of_int16),
        COMPUTED_16, OWN_SYMMETRIC_INT16, multipliers=activations.leaky_relu_multipliers,
        tflite=Tflite.LEAKY_RELU, options=tflite.LeakyReluOptions, read=tflite.leaky_relu,
        write=tflite.write_leaky_relu),
    row(activations.Prelu, meaning.prelu, by_node(formula.prelu), _PRELU, OWN_SYMMETRIC_INT16,
        inputs=2, multipliers=activations.prelu_multipliers,
        tflite=Tflite.PRELU, read=tflite.prelu, onnx="PRelu"),
    row(activations.Elu, by_operator(meaning.elu, meaning.quantized_elu),
        scalar(formula.elu), COMPUTED, OWN, tflite=Tflite.ELU),
    row(activations.HardSwish, by_operator(meaning.hard_swish, meaning.quantized_hard_swish),
        scalar(formula.hard_swish), COMPUTED, OWN,
        multipliers=activations.hard_swish_multipliers,
        tflite=Tflite.HARD_SWISH, onnx="HardSwish"),
    row(activations.Logistic, by_operator(meaning.logistic, meaning.quantized_logistic),
        scalar(formula.logistic, formula.logistic_of_int16), COMPUTED_16,
        activations.fixed_output(activations.LOGISTIC_OF_INT8),
        multipliers=activations.table_multipliers,
        tflite=Tflite.LOGISTIC, fixed=(tflite.LOGISTIC,), onnx="Sigmoid"),
    row(activations.Tanh, real(np.tanh, meaning.quantized_tanh),
        scalar(te.tanh, formula.tanh_of_int16), COMPUTED_16,
        activations.fixed_output(activations.TANH_OF_INT8),
        multipliers=activations.table_multipliers,
        tflite=Tflite.TANH, fixed=(tflite.TANH,), onnx="Tanh"),
    row(activations.Gelu, by_operator(meaning.gelu, meaning.quantized_gelu),
        scalar_by_node(formula.gelu, formula.gelu_of_int16),
        COMPUTED_16, OWN, tflite=Tflite.GELU, options=tflite.GeluOptions, read=tflite.gelu,
        write=tflite.write_gelu),
)  # fmt: skip
