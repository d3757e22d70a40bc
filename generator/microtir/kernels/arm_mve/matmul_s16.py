"""Products of two matrices of int16 by vectors: eight values of two rows and two columns at once.

Values that do not lie as rows are gathered.  Values behind the last whole vector are masked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.arm_dsp.matmul_s16 import Block, Matmul16

_LANES = 8


@dataclass(frozen=True, slots=True)
class _Vectors(Block):
    """The same by vectors; the first one sets the sums."""

    template: ClassVar[str] = "kernels/mve/products_s16.j2"
    needs: ClassVar[Feature] = Feature.MVE
    prefix: ClassVar[str] = "vectors16"

    @property
    def stack_bytes(self) -> int:
        return 144 if self.beside or not self.lies_as_rows else 80

    @property
    def steps(self) -> int:
        return max(self.depth // _LANES - 1, 0)

    def values(self) -> Mapping[str, object]:
        size = DType.INT16.bytes
        return {
            **Block.values(self),
            "has_whole": self.depth >= _LANES,
            "last": str(self.depth % _LANES or ""),
            "columns": str(self.columns),
            "taken": str(_LANES * self.step * size),
            "beside": str(self.beside or ""),
            "beside_taken": str(_LANES * self.beside * size),
            "row": str(size if self.beside else self.depth * size),
        }


class MatmulVectors(Matmul16):
    """Two rows by two columns at a time."""

    name = "matmul_s16_2x2_mve"
    needs = Feature.MVE
    cycles = 145
    of_block = _Vectors
    takes_beside = True
