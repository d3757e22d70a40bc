"""L2_NORMALIZATION of int8: sums of squares and outputs by pairs of elements."""

from __future__ import annotations

from collections.abc import Mapping

from microtir.config import Feature
from microtir.kernels.common.float_edges import halves
from microtir.kernels.common.micro_kernel import repeated
from microtir.kernels.common.normalise import Normalise
from microtir.measure.printed import number

_QUAD = 4
_AT_ONCE = 2  # quads that are unrolled


class NormaliseWords(Normalise):
    """Rows of any length, four outputs at a time."""

    name = "l2norm_s8_1x4_dsp"
    needs = Feature.DSP
    cycles = 122
    template = "kernels/normalise.j2"
    stack_bytes = 36

    def turns(self, rows: int, width: int) -> Mapping[str, int]:
        """Return how often the loops run; no row is so long that its outputs are shifted twice."""
        quads = width // _QUAD
        turns = rows * (quads // (number(repeated(quads, _AT_ONCE), "repeats") or 1))
        return {"bne 1b": rows, "bne 2b": turns, "bne 3b": 0, "bne 4b": turns}

    def values(self, width: int, zero_point: int) -> Mapping[str, object]:
        quads, single = divmod(width, _QUAD)
        parts = repeated(quads, _AT_ONCE)
        return {
            "less": halves((-zero_point & 0xFFFF) * 0x10001),
            "single": str(single) if single else "",
            "turns": str(quads // (number(parts, "repeats") or 1)),
            **parts,
        }
