"""Sketches of int8 written in uint8, the older quantisation."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tests.support.operator_cases import OPERATORS
from tests.support.sketch import Array, Case, Quant, Shape, Sketch

_HALF = 128


def flipped(values: Array) -> Array:
    """Return int8 values as uint8: each is 128 more."""
    return (values.astype(np.int16) + _HALF).astype(np.uint8)


class OlderSketch(Sketch):
    """A sketch of int8 whose quantised tensors become uint8; weights have a zero point."""

    def input(self, shape: Shape, quant: Quant | None = None, values: Array | None = None) -> int:
        index = super().input(shape, quant, values)
        if quant is not None and self._values[-1].dtype == np.int8:
            self._values[-1] = flipped(self._values[-1])
        return index

    def tensor(
        self, name: str, shape: Shape, dtype: npt.DTypeLike, quant: Quant | None = None,
        data: Array | None = None, *, is_variable: bool = False,
    ) -> int:  # fmt: skip
        if quant is None or np.dtype(dtype) != np.int8:
            return super().tensor(name, shape, dtype, quant, data, is_variable=is_variable)
        moved = Quant(quant.scale, quant.zero_point + _HALF)
        stored = None if data is None else flipped(data)
        return super().tensor(name, shape, np.uint8, moved, stored, is_variable=is_variable)

    def taken_as(self, quant: Quant | None) -> Quant | None:
        """Return the same one: LiteRT, whose kernels these are, compares some of them."""
        return quant

    def weights(
        self, data: Array, scales: Sequence[float], axis: int, *, is_int4: bool = False
    ) -> int:
        zero_point = int(self.pick(_HALF, _HALF, self.integer(0, 255), 0, 255))
        stored = flipped(data.astype(np.int8))
        return self._builder.tensor(
            "weights", data.shape, np.uint8, stored, [scales[0]], [zero_point]
        )

    def bias(self, data: Array, scales: Sequence[float]) -> int:
        return super().bias(data, scales[:1])


def older_case(operator: str, seed: int) -> Case:
    """Draw a model of one operator of uint8."""
    rng = np.random.default_rng([seed, zlib.crc32(f"{operator} older".encode())])
    name = f"{operator.lower()}_older_{seed}"
    return OPERATORS[operator].recipe(OlderSketch(name, operator, np.dtype(np.int8), rng))
