"""Weights of four bits, two in a byte of flash, unpacked where they are multiplied."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.tir.ir import Array

LOWEST, HIGHEST = -8, 7


def fits_four_bits(values: Array) -> bool:
    """Return whether weights fit four bits each."""
    return bool(values.size) and LOWEST <= int(values.min()) <= int(values.max()) <= HIGHEST


def packed_bytes(elements: int) -> int:
    """Return the bytes of so many weights."""
    return -(-elements // 2)


def saved_bytes(elements: int) -> int:
    """Return how many bytes less so many weights take than those of eight bits."""
    return elements - packed_bytes(elements)


def _packed(values: Array) -> Array:
    """Return weights two in a byte, the first one in its low half."""
    flat = values.reshape(-1).astype(np.uint8) & 15
    even = np.pad(flat, (0, flat.size % 2)).reshape(-1, 2)
    return np.asarray(even[:, 0] | even[:, 1] << 4, np.uint8)


@dataclass(frozen=True, slots=True)
class PackedWeights:
    """Weights that are read by their places, as those of a tensor are."""

    pairs: te.Tensor
    shape: tuple[int, ...]

    @staticmethod
    def of(values: Array) -> PackedWeights:
        return PackedWeights(te.constant(_packed(values), "weights"), values.shape)

    def __getitem__(self, indices: te.ExprLike | tuple[te.ExprLike, ...]) -> te.Expr:
        first, *others = indices if isinstance(indices, tuple) else (indices,)
        place = te.as_expr(first, DType.INT32)
        for index, extent in zip(others, self.shape[1:], strict=True):
            place = place * extent + index
        pair = te.cast(DType.INT32, self.pairs[place >> 1])
        return te.cast(DType.INT8, ((pair >> ((place & 1) * 4)) & 15 ^ 8) - 8)
