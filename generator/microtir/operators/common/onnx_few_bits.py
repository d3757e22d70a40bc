"""Integers of ONNX of fewer than 8 bits: what holds them, and what they can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from microtir.dtype import DType


@dataclass(frozen=True, slots=True)
class FewBits:
    """A type of few bits.

    Args:
        held: the type of 8 bits that its values are held in.
        bits: how many it has.
    """

    held: DType
    bits: int

    @property
    def count(self) -> int:
        return 1 << self.bits

    @property
    def limits(self) -> tuple[int, int]:
        """Return the least and the greatest value."""
        low = -self.count // 2 if self.held is DType.INT8 else 0
        return low, low + self.count - 1


FEW_BITS: Mapping[int, FewBits] = MappingProxyType(
    {
        21: FewBits(DType.UINT8, 4),
        22: FewBits(DType.INT8, 4),
        25: FewBits(DType.UINT8, 2),
        26: FewBits(DType.INT8, 2),
    }
)
"""The types by their numbers in files."""
