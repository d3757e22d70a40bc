"""Footprints follow the conditions around an access."""

from __future__ import annotations

from microtir import te
from microtir.dtype import DType
from microtir.kernels.common.statements import let, load, loop, store, when
from microtir.memory.footprint import Footprints, Span
from microtir.tir import ir


def spans(condition: str) -> tuple[Span, ...]:
    """What a loop over 8 columns reads of 16 bytes where a condition on `x_col` holds."""
    x = ir.Buffer("x", (1, 16), DType.INT8)
    y = ir.Buffer("y", (8,), DType.INT8)
    conditions = {
        "inside": lambda c: (c >= 0) & (c + 3 < 16),
        "few": lambda c: c * 2 < 7,
        "far": lambda c: c > 13,
    }

    def column(n: te.Expr) -> ir.Stmt:
        return let(
            "x_col", n * 2 - 1,
            lambda c: when(conditions[condition](c), store(y, (n,), load(x, 0, c))),
        )  # fmt: skip

    func = ir.PrimFunc("f", (x, y), loop("col", 0, 8, column))
    (found,) = Footprints().of(func, ())
    return tuple(span for span in found if span.param is x)


def reach(condition: str) -> list[tuple[int, int]]:
    """Bytes of the spans."""
    return [(span.start, span.stop) for span in spans(condition)]


def test_conditions_limit_what_is_read() -> None:
    """Bounds on both sides, a factor, and a condition that no value fulfils."""
    assert reach("inside") == [(1, 12)]  # every other column from 1 on
    assert reach("few") == [(0, 4)]
    assert reach("far") == []
