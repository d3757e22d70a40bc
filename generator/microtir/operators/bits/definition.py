"""Define the attributes of operators on bits, of which those on integers broadcast as numpy."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.operator import Operator


@dataclass(frozen=True, slots=True)
class BitwiseAnd(Operator):
    """The bits that both inputs have."""


@dataclass(frozen=True, slots=True)
class BitwiseOr(Operator):
    """The bits that one of the inputs has, or both."""


@dataclass(frozen=True, slots=True)
class BitwiseXor(Operator):
    """The bits in which the inputs differ."""


@dataclass(frozen=True, slots=True)
class BitCast(Operator):
    """The bits of a float32 as an int32, or those of an int32 as a float32."""


@dataclass(frozen=True, slots=True)
class OrderedBits(Operator):
    """An int32 for each float32, which are in order as the floats are.

    Those of 0 and -0 are 0 and -1, with nothing between; what is no number is above all others.
    """
