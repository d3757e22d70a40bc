"""Sketches whose integer tensors have a scale and a zero point each."""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from tests.support.older_sketch import OlderSketch
from tests.support.operator_cases import OPERATORS, RECURRENT
from tests.support.sketch import Array, Case, Quant, Shape, Sketch

NARROW = ("int8", "uint8", "int16")

TINY_SCALE = float(np.float32(3.6e-43))
"""The least normal float32 by 32767, nearly."""

_RATIOS = (1.3, 0.5, 0.7, 1.7, 1.01)


class UnlikeSketch(Sketch):
    """A sketch whose tensors behind the first have another scale and zero point than it draws.

    Weights, biases and what a recipe gives no scale but for a type that has none stay.  The choices
    of the recipe are the same whether tensors are made unlike or not.
    """

    is_unlike = True

    def tensor(
        self, name: str, shape: Shape, dtype: npt.DTypeLike, quant: Quant | None = None,
        data: Array | None = None, *, is_variable: bool = False,
    ) -> int:  # fmt: skip
        if np.dtype(dtype) in (np.int8, np.int16):
            quant = quant or Quant(float(np.float32(0.02)), 0)
            if self.is_unlike and name != "input0" and not is_variable:
                quant = self._other(name, quant, dtype)
        return super().tensor(name, shape, dtype, quant, data, is_variable=is_variable)

    def taken_as(self, quant: Quant | None) -> Quant | None:
        """Return the same one: which tensors are unlike is said below."""
        return quant

    def _other(self, name: str, quant: Quant, dtype: npt.DTypeLike) -> Quant:
        rng = np.random.default_rng([zlib.crc32(f"{self.name} {name}".encode())])
        scale = float(np.float32(quant.scale * rng.choice(_RATIOS)))
        info = np.iinfo(dtype)
        zero_point = 0 if info.bits > 8 else int(rng.integers(info.min, info.max, endpoint=True))
        return Quant(scale, zero_point)


class UnlikeOlderSketch(UnlikeSketch, OlderSketch):
    """Such a sketch of uint8."""


class AlikeSketch(UnlikeSketch):
    """The same sketch with the scales of its recipe."""

    is_unlike = False


class AlikeOlderSketch(AlikeSketch, OlderSketch):
    """Such a sketch of uint8."""


def unlike_case(operator: str, dtype: str, seed: int, *, is_unlike: bool = True) -> Case:
    """Draw a model of one operator of a narrow type, with unlike scales or the same one without."""
    kinds = (UnlikeSketch, AlikeSketch), (UnlikeOlderSketch, AlikeOlderSketch)
    kind = kinds[dtype == "uint8"][not is_unlike]
    drawn = "int16" if dtype == "int16" else "int8"
    rng = np.random.default_rng([seed, zlib.crc32(f"{operator} {dtype} unlike".encode())])
    recipe = (OPERATORS.get(operator) or RECURRENT[operator]).recipe
    name = f"{operator.lower()}_{dtype}_unlike_{seed}"
    return recipe(kind(name, operator, np.dtype(drawn), rng))


class TinySketch(AlikeSketch):
    """A sketch one of whose tensors has the scale that converters give one that was always 0."""

    tiny = "input0"

    def tensor(
        self, name: str, shape: Shape, dtype: npt.DTypeLike, quant: Quant | None = None,
        data: Array | None = None, *, is_variable: bool = False,
    ) -> int:  # fmt: skip
        if quant is not None and name == self.tiny:
            quant = Quant(TINY_SCALE, quant.zero_point)
        return super().tensor(name, shape, dtype, quant, data, is_variable=is_variable)


class TinySecondSketch(TinySketch):
    """A sketch whose second operand is such a tensor, where it has one."""

    tiny = "input1"


class TinyOutputSketch(TinySketch):
    """A sketch whose output is such a tensor."""

    tiny = "output"
