"""Define operators on bits, of which those on integers broadcast as numpy: attributes and rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microtir.dtype import DType
from microtir.graph.operator import Operator
from microtir.operators.common.quantization import UNUSED
from microtir.operators.common.shapes import broadcast_shape
from microtir.operators.common.types import TypeRule, TypeSignature, equal_types
from microtir.operators.definition import Definition, Trait


@dataclass(frozen=True, slots=True)
class BitwiseAnd(Operator):
    name: ClassVar[str] = "bitwise_and"


@dataclass(frozen=True, slots=True)
class BitwiseOr(Operator):
    name: ClassVar[str] = "bitwise_or"


@dataclass(frozen=True, slots=True)
class BitwiseXor(Operator):
    name: ClassVar[str] = "bitwise_xor"


@dataclass(frozen=True, slots=True)
class BitCast(Operator):
    """The bits of a float32 as an int32, or those of an int32 as a float32."""

    name: ClassVar[str] = "bit_cast"


@dataclass(frozen=True, slots=True)
class OrderedBits(Operator):
    """An int32 for each float32, which are in order as the floats are.

    Those of 0 and -0 are 0 and -1, with nothing between; what is no number is above all others.
    """

    name: ClassVar[str] = "ordered_bits"


def _binary(op: type[Operator]) -> Definition:
    return Definition(
        op,
        types=equal_types(DType.INT32, DType.INT64),
        quantization=UNUSED,
        shapes=broadcast_shape,
        inputs=(2, 2),
        traits=frozenset({Trait.ELEMENTWISE}),
    )


DEFINITIONS = (
    _binary(BitwiseAnd),
    _binary(BitwiseOr),
    _binary(BitwiseXor),
    Definition(
        BitCast,
        types=TypeRule((
            TypeSignature((DType.FLOAT32,), DType.INT32),
            TypeSignature((DType.INT32,), DType.FLOAT32),
        )),
        quantization=UNUSED,
        traits=frozenset({Trait.ELEMENTWISE}),
    ),
    Definition(
        OrderedBits,
        types=TypeRule((TypeSignature((DType.FLOAT32,), DType.INT32),)),
        quantization=UNUSED,
        traits=frozenset({Trait.ELEMENTWISE}),
    ),
)  # fmt: skip
