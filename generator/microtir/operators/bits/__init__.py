"""Operators on the bits of integers, a row each."""

import operator

import numpy as np

from microtir.dtype import DType
from microtir.operators.bits import definition as bits
from microtir.operators.bits import formula, meaning
from microtir.operators.common.elementwise_formula import broadcast
from microtir.operators.common.elementwise_meaning import plain
from microtir.operators.common.types import converting, equal_types
from microtir.operators.elementwise import row

_F32, _I32 = DType.FLOAT32, DType.INT32
_INTEGERS = equal_types(_I32, DType.INT64)

RECORDS = (
    row(bits.BitwiseAnd, plain(np.bitwise_and), broadcast(operator.and_), _INTEGERS,
        inputs=2, onnx="BitwiseAnd"),
    row(bits.BitwiseOr, plain(np.bitwise_or), broadcast(operator.or_), _INTEGERS,
        inputs=2, onnx="BitwiseOr"),
    row(bits.BitwiseXor, plain(np.bitwise_xor), broadcast(operator.xor), _INTEGERS,
        inputs=2, onnx="BitwiseXor"),
    row(bits.BitCast, meaning.bit_cast, broadcast(formula.bit_cast),
        converting((_F32, _I32), (_I32, _F32))),
    row(bits.OrderedBits, meaning.ordered_bits, broadcast(formula.ordered_bits),
        converting((_F32, _I32))),
)  # fmt: skip
