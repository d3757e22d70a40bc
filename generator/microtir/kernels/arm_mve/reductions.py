"""Reductions by vectors: channels of a pixel at a time, or sixteen neighbours of a line."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.arm_mve.requantise import WORDS, Rescaling, constants_of
from microtir.kernels.common.reductions import (
    LONGEST_SUM,
    Extents,
    Finish,
    Form,
    Operation,
    Reductions,
)
from microtir.kernels.common.statements import load
from microtir.measure.printed import number
from microtir.operators.common.linear import LinearParams
from microtir.tir import ir

_BYTES = 16  # of a vector
_SUMS = 8  # lanes of sums
_LINES = 4  # at a time, of sums
_AT_ONCE = 8  # vectors of a turn
_STRAIGHT = 16  # the most vectors without a loop
_REGISTERS, _LABELS = ("r4", "r6", "r8", "r10"), (2, 3, 4, 5)  # of lines
_NEAR = 127  # channels of a step that a load takes


class ReductionsByVectors(Reductions):
    """Sums in lanes of 16 bits or across vectors, extremes in bytes."""

    name = "reduce_s8_1x16_mve"
    needs = Feature.MVE
    cycles = 123
    columns = "kernels/mve/reduce_columns.j2"
    rows = "kernels/mve/reduce_rows.j2"
    words = WORDS
    stack_bytes = 48
    inner_loop = "le lr,"

    def rescaled(
        self, params: LinearParams, bias: int, largest: int, _dtype: DType
    ) -> Finish | None:
        words = constants_of(params, np.array([bias]), np.array([largest]))
        return None if words is None else Finish(Rescaling.of(params), tuple(words[0].tolist()))

    def stored(self, form: Form, total: te.Expr, constants: ir.Buffer) -> te.Expr:
        assert isinstance(form, Rescaling)
        bias, *factors = (load(constants, 0, word) for word in range(WORDS))
        return form.apply(total + bias, factors)

    def values(self, extents: Extents, operation: Operation, _dtype: DType) -> Mapping[str, object]:
        return _rows(extents, operation) if extents.is_rows else _columns(extents, operation)

    def turns_of_rows(self, _extents: Extents, values: Mapping[str, object]) -> Mapping[str, int]:
        outer = number(values, "turns_of_all")
        inner = outer * number(values, "turns")
        return {"bne 1b": outer, "bpl 1b": outer, **{f"le lr, {n}b": inner for n in _LABELS}}


def _columns(extents: Extents, operation: Operation) -> Mapping[str, object]:
    count, channels, is_sum = extents.count, extents.channels, operation is Operation.SUM
    lanes = _SUMS if is_sum else _BYTES
    masked = channels < lanes
    turns, rest = divmod(max(channels, lanes), lanes)
    parts, last = divmod(count, LONGEST_SUM) if is_sum and count > LONGEST_SUM else (0, 0)
    predicated = "t" if masked else ""
    return {
        "channels": str(channels),
        "lanes": str(lanes),
        "lane_bits": str(128 // lanes),
        "is_masked": masked,
        "steps_far": channels > _NEAR,
        "load": f"vldrb{predicated}.{'s16' if is_sum else 'u8'}",
        "store": f"vstrb{predicated}.{'16' if is_sum else '8'}",
        "combine": "vadd.i16" if is_sum else f"v{operation.value}.s8",
        "turns": str(turns),
        "turns_of_all": str(turns + (rest > 0)),
        "back": str(lanes - rest) if rest else "",
        "parts": str(parts) if parts else "",
        "whole": _run(LONGEST_SUM if parts else count),
        "last": _run(last),
    }


def _run(pixels: int) -> dict[str, object]:
    """Return how so many pixels are taken: turns of some, and the rest."""
    turns, rest = divmod(pixels, _AT_ONCE)
    if pixels <= _STRAIGHT:
        turns, rest = 0, pixels
    return {
        "is_there": bool(pixels),
        "turns": str(turns) if turns else "",
        "turn": list(range(_AT_ONCE)),
        "rest": list(range(rest)),
    }


def _rows(extents: Extents, operation: Operation) -> Mapping[str, object]:
    vectors, tail = divmod(extents.count, _BYTES)
    lines, is_sum = extents.lines, operation is Operation.SUM
    turns, rest = (0, vectors) if vectors <= _STRAIGHT else divmod(vectors, _AT_ONCE)
    at_once = min(lines, _LINES) if is_sum else 1
    groups, left = divmod(lines, at_once)
    back = (at_once - left) if left else 0
    bytes_back = back * extents.count
    combined = "vaddva" if is_sum else f"v{operation.value}v"
    return {
        "lines": str(groups),
        "turns_of_all": str(groups + (left > 0)),
        "turns": str(turns) if turns else "",
        "at_once": str(_AT_ONCE),
        "rest": str(rest) if rest else "",
        "tail": str(tail) if tail else "",
        "combine": f"{combined}.s8",
        "combine_masked": f"{combined}t.s8",
        "least": f"{'mvn' if operation is Operation.MAX else 'mov'} r4, #127",
        "targets": [
            {"register": register, "label": str(label)}
            for register, label in zip(_REGISTERS[:at_once], _LABELS[:at_once], strict=True)
        ],
        "stored": str(at_once) if at_once < _LINES else "",
        "back": str(back),
        "back_low": str(bytes_back & 0xFFFF) if back else "",
        "back_high": str(bytes_back >> 16),
    }
