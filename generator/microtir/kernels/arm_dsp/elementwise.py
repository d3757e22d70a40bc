"""Elementwise operators by words of four bytes, and tables by bytes."""

from __future__ import annotations

from collections.abc import Mapping

from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.common.elementwise import Elementwise, Lane, Run

_WORD = 4
_TURN = 4  # words of a turn of the loop
_LOOKED_UP = 8  # elements of one


class ElementwiseWords(Elementwise):
    """Lanes of a byte in general registers."""

    name = "lanes_s8_1x4_dsp"
    needs = Feature.DSP
    cycles = 140
    template = "kernels/lanes.j2"
    stack_bytes = 16
    types = (DType.INT8,)

    def values(self, run: Run) -> Mapping[str, object]:
        looks_up = run.lane is Lane.LOOK_UP
        at_once = _LOOKED_UP if looks_up else _WORD * _TURN
        turns, left = divmod(run.count, at_once)
        words, single = (0, left) if looks_up else divmod(left, _WORD)
        return {
            "lane": run.lane.value,
            "first_repeats": run.repeats[0],
            "second_repeats": run.repeats[-1],
            "turns": str(turns) if turns else "",
            "in_turn": str(_LOOKED_UP if looks_up else _TURN),
            "words": str(words) if words else "",
            "single": str(single) if single else "",
        }

    def turns(self, run: Run) -> Mapping[str, int]:
        return {"bne 1b": int(str(self.values(run)["turns"] or 0))}
