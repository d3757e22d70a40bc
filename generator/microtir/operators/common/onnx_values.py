"""Values of names in an ONNX file: each is a tensor, or a sequence of tensors.

The graph knows no sequences: how many tensors one has follows from constants and shapes, so that
readers take it apart and put it together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from microtir.graph.ir import Tensor


@dataclass(frozen=True, slots=True)
class TensorSequence:
    """Tensors in an order, each of a shape of its own."""

    items: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class RowCount:
    """The part of a tensor that is in use: `count` rows along `axis`, from the front.

    `count` is an int32 of shape (1,).  What lies behind these rows means nothing.
    """

    axis: int
    count: Tensor


@dataclass(frozen=True, slots=True)
class Distance:
    """An integer as a sum of multiples of integers that nothing is known of, and of a number.

    `parts` are these, each a tensor and a place in it, with how often each is in the sum.
    """

    parts: frozenset[tuple[tuple[Tensor, int], int]]
    number: int

    def plus(self, other: Distance) -> Distance:
        counts = dict(self.parts)
        for part, count in other.parts:
            counts[part] = counts.get(part, 0) + count
        parts = frozenset(item for item in counts.items() if item[1])
        return Distance(parts, self.number + other.number)

    def times(self, factor: int) -> Distance:
        parts = frozenset((part, count * factor) for part, count in self.parts if factor)
        return Distance(parts, self.number * factor)


Value: TypeAlias = "Tensor | TensorSequence"


def tensors_of(value: Value | None) -> tuple[Tensor, ...]:
    """Return the tensors of a value; one that is left out has none."""
    if isinstance(value, TensorSequence):
        return value.items
    return () if value is None else (value,)
