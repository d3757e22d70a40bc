"""Elementwise operators by words, tables and arithmetic by elements, floats by eight."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from microtir.config import Feature
from microtir.config.target import Target
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common.elementwise import (
    Arithmetic,
    Elementwise,
    Lane,
    Run,
    Sigmoids,
    form_of,
    run_of,
)
from microtir.kernels.common.sigmoids import Sigmoid
from microtir.measure.printed import number
from microtir.operators.activations.definition import Relu
from microtir.operators.arithmetic.definition import Add, Maximum, Minimum, Mul, Sub

_WORD = 4
_TURN = 4  # words, or elements of arithmetic, of a turn of the loop
_LOOKED_UP = 8  # elements of one
_FLOATS = 8  # of a turn


class ElementwiseWords(Elementwise):
    """Lanes of an element in general registers."""

    name = "lanes_s8_1x4_dsp"
    needs = Feature.DSP
    cycles = 140
    template = "kernels/lanes.j2"
    stack_bytes = 16
    types = (DType.INT8, DType.INT16, DType.UINT8)

    def values(self, run: Run) -> Mapping[str, object]:
        looks_up = run.lane is Lane.LOOK_UP
        in_word = _WORD // run.dtype.bytes
        at_once = _LOOKED_UP if looks_up else in_word * _TURN
        turns, left = divmod(run.count, at_once)
        words, single = (0, left) if looks_up else divmod(left, in_word)
        is_long = run.dtype is DType.INT16
        return {
            "lane": run.lane.value,
            "bits": str(run.dtype.bits),
            "width": "h" if is_long else "b",
            "bytes": str(run.dtype.bytes),
            "ones": "0x10001" if is_long else "0x01010101",
            "first_repeats": run.repeats[0],
            "second_repeats": run.repeats[-1],
            "turns": str(turns) if turns else "",
            "in_turn": str(_LOOKED_UP if looks_up else _TURN),
            "words": str(words) if words else "",
            "single": str(single) if single else "",
        }

    def turns(self, run: Run) -> Mapping[str, int]:
        return {"bne 1b": number(self.values(run), "turns")}


class ElementwiseFloats(Elementwise):
    """Lanes of float32 in registers of the FPU, loaded and stored eight at a time."""

    name = "lanes_f32_1x8_dsp"
    operators = (Minimum, Maximum, Add, Sub, Mul, Relu)
    needs = Feature.FPU
    template = "kernels/lanes_f32.j2"
    stack_bytes = 8
    types = (DType.FLOAT32,)

    def suits(self, target: Target) -> bool:
        return target.has(Feature.DSP)

    def cycles_of(self, node: Node, instructions: int) -> int:
        """Return the cycles: loads and stores of many registers are long ones."""
        run, _ = run_of(node)
        compares = run.lane in (Lane.MINIMUM, Lane.MAXIMUM) or any(map(math.isfinite, run.ends))
        return instructions * (170 if compares else 300) // 100

    def values(self, run: Run) -> Mapping[str, object]:
        """Return what the template is given; ends are loaded as the halves of their bits."""
        turns, left = divmod(run.count, _FLOATS)
        ends = tuple(
            (register, condition, str(bits[0]), str(bits[1]))
            for end, register, condition in zip(run.ends, ("s16", "s17"), ("le", "pl"), strict=True)
            if math.isfinite(end)
            for bits in [np.array([end], np.float32).view(np.uint16)]
        )
        return {
            "lane": run.lane.value,
            "first_repeats": run.repeats[0],
            "second_repeats": run.repeats[-1],
            "turns": str(turns) if turns else "",
            "turn": _registers(run, _FLOATS),
            "left": _registers(run, left) if left else "",
            "ends": ends,
        }

    def turns(self, run: Run) -> Mapping[str, int]:
        return {"bne 1b": run.count // _FLOATS}


def _registers(run: Run, count: int) -> tuple[object, ...]:
    """Return lists of the registers of operands and results, and both and the result of each."""
    first, second = ([f"s{start + n}" for n in range(count)] for start in (0, _FLOATS))
    results = second if run.repeats[0] else first
    lists = (f"{{{', '.join(names)}}}" for names in (first, second, results))
    a = first[:1] * count if run.repeats[0] else first
    b = second[:1] * count if run.repeats[-1] else second
    return (*lists, tuple(zip(a, b, results, strict=True)))


class ArithmeticWords(Arithmetic):
    """Lanes of 32 bits in general registers."""

    name = "arithmetic_s8_1x1_dsp"
    needs = Feature.DSP
    cycles = 140
    template = "kernels/arithmetic.j2"
    stack_bytes = 36

    def values(self, run: Run) -> Mapping[str, object]:
        turns, single = divmod(run.count, _TURN)
        return {
            **form_of(run).values(run.repeats),
            "turns": str(turns) if turns else "",
            "in_turn": str(_TURN),
            "single": str(single) if single else "",
        }

    def turns(self, run: Run) -> Mapping[str, int]:
        return {"bne 1b": run.count // _TURN}


class SigmoidWords(Sigmoids):
    """Two elements of a word, one after the other."""

    name = "sigmoid_s16_1x2_dsp"
    needs = Feature.DSP
    cycles = 150
    template = "kernels/sigmoids_s16.j2"
    stack_bytes = 36

    def values(self, run: Run) -> Mapping[str, object]:
        assert isinstance(run.lane, Sigmoid)
        turns, left = divmod(run.count, _TURN)
        pairs, single = divmod(left, 2)
        multiplier, right = run.lane.scaling
        return {
            "is_logistic": run.lane.is_logistic,
            "multiplier": str(multiplier),
            "right": str(right) if right else "",
            "half": str((1 << right) >> 1),
            "turns": str(turns) if turns else "",
            "pairs": str(pairs) if pairs else "",
            "single": str(single) if single else "",
        }

    def turns(self, run: Run) -> Mapping[str, int]:
        return {"bne 1b": run.count // _TURN}
