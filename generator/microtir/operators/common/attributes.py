"""Declare the attributes that operators of several families have."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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
