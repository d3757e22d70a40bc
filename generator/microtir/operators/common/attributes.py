"""Declare the attributes that operators of several families have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from microtir.graph.operator import Operator


class Activation(Enum):
    """Activation fused into a producer: a clamp of its real result."""

    NONE = "none"
    RELU = "relu"
    RELU6 = "relu6"
    RELU_N1_TO_1 = "relu_n1_to_1"

    @property
    def real_range(self) -> tuple[float, float]:
        """Return the bounds, both included, that the real value is clamped to."""
        inf = float("inf")
        return {
            Activation.NONE: (-inf, inf),
            Activation.RELU: (0.0, inf),
            Activation.RELU6: (0.0, 6.0),
            Activation.RELU_N1_TO_1: (-1.0, 1.0),
        }[self]


class Rescaling(Enum):
    """The arithmetic that turns sums of stored integers into stored integers of another scale.

    FIXED_POINT is TFLite's: a multiplier of 31 bits and a shift.  FLOAT32 is that of ONNX's QLinear
    operators as onnxruntime computes them: the sum as a float32 times a float32, rounded to the
    nearest integer, of two the even one.  FLOAT64 is that of LiteRT's reference kernel of
    FULLY_CONNECTED: the sum times a double, of two nearest integers the one away from zero.  EXACT
    is the formula of PT2E without a rounding on the way: the real number times the float32
    reciprocal of the scale, to the nearest integer, of two the even one.
    """

    FIXED_POINT = "fixed_point"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    EXACT = "exact"

    @property
    def in_float(self) -> bool:
        """Return whether a factor is a real number, and no multiplier with a shift."""
        return self is not Rescaling.FIXED_POINT

    @property
    def in_double(self) -> bool:
        """Return whether a factor is a double."""
        return self in (Rescaling.FLOAT64, Rescaling.EXACT)


class RescaledOperator(Operator):
    """An operator whose results on integers are rescaled in one of these ways.

    It declares the field itself, so that it may have another base with fields.
    """

    __slots__ = ()
    rescaling: Rescaling

    def rescaled(self, rescaling: Rescaling) -> Operator:
        change: Mapping[str, Rescaling] = {"rescaling": rescaling}  # a field of each subclass
        return replace(self, **change)


@dataclass(frozen=True, slots=True)
class Padding2D:
    """Rows and columns added around an image, resolved from SAME or VALID by the frontend."""

    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0

    def __str__(self) -> str:
        return f"[{self.top}, {self.bottom}] x [{self.left}, {self.right}]"


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """The window of an image operator; pairs are rows, columns."""

    taps: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    padding: Padding2D
