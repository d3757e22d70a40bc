from __future__ import annotations

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.schedule import Schedule
from microtir.tir.ir import (
    Allocate,
    Binary,
    BinaryOp,
    For,
    IntImm,
    Load,
    LoopKind,
    PrimFunc,
    Select,
)
from microtir.tir.printer import expr_text
from microtir.tir.visitor import walk
from tests.schedule.programs import outputs

DEPTH, COLUMNS = 12, 4


def register_block() -> tuple[tuple[te.Tensor, ...], Schedule]:
    """One row of a matrix product: two columns at a time, four terms in each turn of the loop."""
    x = te.placeholder((DEPTH,), DType.INT8, "x")
    w = te.placeholder((DEPTH, COLUMNS), DType.INT8, "w")
    value = te.compute(x.shape, lambda n: te.cast(DType.INT32, x[n]), "value")
    k = te.reduce_axis(0, DEPTH, "k")

    def product(col: te.Expr) -> te.Expr:
        return te.sum(value[k] * te.cast(DType.INT32, w[k, col]), k)

    y = te.compute((COLUMNS,), product, "y")
    s = te.create_schedule(y)
    _, block = s.split(s.loop(y, "col"), 2)
    s.cache_write(block)
    inner = s.loop(y, "k")
    s.reorder(inner, block)
    s.compute_at(value, inner)
    for loop in s.loops(y):
        if loop.name.startswith("col_inner"):
            s.unroll(loop)
    s.unroll(s.split(inner, 4)[1])
    return (x, w, y), s


def loads(func: PrimFunc, name: str) -> list[Load]:
    """Loads of a buffer in the order of the text."""
    return [n for n in walk(func) if isinstance(n, Load) and n.buffer.name == name]


def test_block_keeps_its_sums_in_variables_and_reads_each_element_once() -> None:
    """Nothing is marked any more, no array is left, and the results are those of the schedule."""
    args, s = register_block()
    kernel = s.micro_kernel(args, "kernel")
    kinds = {n.kind for n in walk(kernel) if isinstance(n, For)}
    assert kinds == {LoopKind.SERIAL}
    assert all(n.buffer.shape == () for n in walk(kernel) if isinstance(n, Allocate))
    assert len(loads(kernel, "x")) == 4 and len(loads(kernel, "w")) == 8
    expected = outputs(s.primfunc(args, "block"))
    assert np.array_equal(outputs(kernel)["y"], expected["y"])


def test_indices_of_the_copies_differ_in_their_last_number() -> None:
    """What stands before it is one expression, so that a compiler has one pointer for all."""
    args, s = register_block()
    bases, offsets = set(), []
    for load in loads(s.micro_kernel(args, "kernel"), "x"):
        match load.indices[0]:
            case Binary(BinaryOp.ADD, first, IntImm(last)):
                pass
            case first:
                last = 0
        bases.add(expr_text(first))
        offsets.append(last)
    assert len(bases) == 1 and offsets == [0, 1, 2, 3]


def test_conditions_that_a_loop_of_one_turn_decides_are_gone() -> None:
    """Where storage is cut to one element no loop is left, nor what compared its variable."""
    x = te.placeholder((COLUMNS,), DType.INT32, "x")
    chosen = te.compute((1, COLUMNS), lambda n, col: te.select(n == 0, x[col], 0), "chosen")
    y = te.compute((COLUMNS,), lambda col: chosen[0, col] * 2, "y")
    s = te.create_schedule(y)
    s.compute_at(chosen, s.loop(y, "col"))
    kernel = s.micro_kernel((x, y), "kernel")
    assert not [n for n in walk(kernel) if isinstance(n, Select)]
