"""Reductions by words: channels of a pixel at a time that fill one, or neighbours of a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.common.reductions import (
    LONGEST_SUM,
    Extents,
    Finish,
    Form,
    Operation,
    Reductions,
)
from microtir.kernels.common.requantise import WORDS, Rescaling, requantisation
from microtir.measure.printed import number
from microtir.operators.common.linear import LinearParams
from microtir.tir import ir

_WORD = 4
_AT_ONCE = 8  # words of a turn
_STRAIGHT = 16  # words of a line that has no loop
_REACH = 4095  # of a load


class ReductionsByWords(Reductions):
    """Sums in lanes of twice the bits of an element, extremes in such of an element."""

    name = "reduce_s8_1x4_dsp"
    needs = Feature.DSP
    columns = "kernels/reduce_columns.j2"
    rows = "kernels/reduce_rows.j2"
    words = WORDS
    stack_bytes = 36
    inner_loop = "bne"
    types = (DType.INT8, DType.INT16)

    def rescaled(
        self, params: LinearParams, bias: int, largest: int, dtype: DType
    ) -> Finish | None:
        sequence = requantisation(params, np.array([bias]), np.array([largest]))
        if sequence is None or sequence.rescaling.in_float:
            return None
        rescaling = replace(sequence.rescaling, dtype=dtype)
        return Finish(rescaling, tuple(sequence.constants[0].tolist()))

    def stored(self, form: Form, total: te.Expr, constants: ir.Buffer) -> te.Expr:
        assert isinstance(form, Rescaling)
        return form.apply(total * 2, constants, 0)

    def values(self, extents: Extents, operation: Operation, dtype: DType) -> Mapping[str, object]:
        by = _rows if extents.is_rows else _columns
        is_long = dtype is DType.INT16
        return {
            "is_long": is_long,
            "lanes": str(dtype.bits),
            "narrow_load": "ldrh" if is_long else "ldrb",
            "narrow_store": "strh" if is_long else "strb",
            "element": str(dtype.bytes),
            **by(extents, operation, dtype),
        }

    def turns_of_rows(self, extents: Extents, values: Mapping[str, object]) -> Mapping[str, int]:
        return {"bne 1b": extents.lines, "bne 2b": extents.lines * number(values, "turns")}


def _columns(extents: Extents, operation: Operation, dtype: DType) -> Mapping[str, object]:
    count, channels, size = extents.count, extents.channels, dtype.bytes
    lanes = _WORD // size
    width = lanes if channels >= lanes else 1
    is_cut = operation is Operation.SUM and dtype is DType.INT8
    parts = count // LONGEST_SUM if is_cut and count > LONGEST_SUM else 0
    last = count % LONGEST_SUM if parts else 0
    narrow = "b" if dtype is DType.INT8 else "h"
    back = (lanes - channels % lanes) * size if width > 1 and channels % lanes else 0
    return {
        "load": "ldr" if width > 1 else f"ldr{narrow}",
        "store": "str" if width > 1 else f"str{narrow}",
        "width": str(width * size),
        "turns": str(channels // width),
        "turns_of_all": str(-(-channels // width)),
        "back": str(back) if back else "",
        "parts": str(parts) if parts else "",
        "whole": _run(LONGEST_SUM if parts else count, channels * size),
        "last": _run(last, channels * size),
        "sums": [
            {"register": f"r{4 + place}", "place": str(place * size)} for place in range(width)
        ],
    }  # fmt: skip


def _run(pixels: int, pixel: int) -> dict[str, object]:
    """Return how so many pixels of so many bytes are taken: turns of some, and the rest."""
    at_once = max(1, min(_AT_ONCE, _REACH // pixel))
    turns, rest = divmod(pixels, at_once)
    if turns == 1 and pixels * pixel <= _REACH:
        turns, rest = 0, pixels
    return {
        "is_there": bool(pixels),
        "turns": str(turns) if turns else "",
        "offsets": [str(n * pixel) for n in range(at_once)],
        "step": str(at_once * pixel),
        "rest": [str(n * pixel) for n in range(rest)],
        "left": str(rest * pixel) if rest else "",
    }


def _rows(extents: Extents, operation: Operation, dtype: DType) -> Mapping[str, object]:
    """Return what the template of lines is given; offsets count from `base`."""
    size, count = dtype.bytes, extents.count * dtype.bytes
    words, single = extents.count // (_WORD // size), extents.count % (_WORD // size)
    turns = words // _AT_ONCE if words > _STRAIGHT else 0
    done = turns * _AT_ONCE
    rest = [n * _WORD for n in range(words - done)]
    singles = [len(rest) * _WORD + n * size for n in range(single)]
    if operation is not Operation.SUM and words and single:
        rest, singles = [*rest, count - _WORD - done * _WORD], []
    start = -(128 * _WORD * words) % (1 << 32)
    return {
        "lines": str(extents.lines),
        "count": str(count),
        "is_far": count > _REACH,
        "turns": str(turns) if turns else "",
        "offsets": [str(n * _WORD) for n in range(_AT_ONCE)],
        "step": str(_AT_ONCE * _WORD),
        "base": "ip" if turns else "r0",
        "rest": list(map(str, rest)),
        "single": list(map(str, singles)),
        "first_load": "ldr" if words else "ldrb" if dtype is DType.INT8 else "ldrh",
        "has_words": bool(words),
        "start_low": str(start & 0xFFFF),
        "start_high": str(start >> 16),
    }
