"""Small programs that the schedule tests rewrite, and the comparison of their results."""

from __future__ import annotations

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.schedule import Schedule
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.ir import Allocate, Array, Buffer, PrimFunc, Scope, Var
from microtir.tir.passes import pipeline
from microtir.tir.text import parse, to_text
from microtir.tir.verify import verify
from microtir.tir.visitor import walk
from tests.te.running import run


def matmul(rows: int = 5, depth: int = 6, cols: int = 7, dtype: DType = DType.INT32) -> te.Tensor:
    """y[i, j] = 1 + sum over k of x[i, k] * w[k, j]."""
    x, w = te.placeholder((rows, depth), dtype, "x"), te.placeholder((depth, cols), dtype, "w")
    k = te.reduce_axis(0, depth, "k")
    return te.compute((rows, cols), lambda i, j: te.sum(x[i, k] * w[k, j], k) + 1, "y")


def blur(rows: int = 6, cols: int = 5) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """x, t = 2 * x and y, the sum of the 3 x 3 neighbours of t that exist."""
    x = te.placeholder((rows, cols), DType.INT32, "x")
    t = te.compute((rows, cols), lambda r, c: x[r, c] * 2, "t")

    def body(row: te.Expr, col: te.Expr) -> te.Expr:
        dy = te.reduce_axis(te.maximum(0, 1 - row), te.minimum(3, rows + 1 - row), "dy")
        dx = te.reduce_axis(te.maximum(0, 1 - col), te.minimum(3, cols + 1 - col), "dx")
        return te.sum(t[row + dy - 1, col + dx - 1], [dy, dx])

    return x, t, te.compute((rows, cols), body, "y")


def arguments(func: PrimFunc, seed: int = 0) -> dict[str, Array | int]:
    """Random arguments: small whole numbers, so that no sum overflows; Vars at their highest."""
    rng = np.random.default_rng(seed)
    values: dict[str, Array | int] = {}
    for param in func.params:
        if isinstance(param, Var):
            values[param.name] = param.high or 0
        elif param.scope is Scope.PARAMETER:
            shape = [int(d.high or 0) if isinstance(d, Var) else d for d in param.shape]
            low = -9 if param.dtype.is_signed else 0
            values[param.name] = rng.integers(low, 9, shape).astype(param.dtype.value)
    return values


def outputs(func: PrimFunc) -> dict[str, Array]:
    """What a function stores, after every check that a function goes through."""
    verify(func)
    assert to_text(parse(to_text(func))) == to_text(func)
    return run(func, arguments(func))


def lowered(func: PrimFunc) -> PrimFunc:
    """The function after the passes of `lower`, its accesses proven."""
    for step in pipeline():
        func = step(func)
    verify(func)
    prove_accesses(func)
    return func


def check_meaning(schedule: Schedule, tensor: te.Tensor | list[te.Tensor]) -> PrimFunc:
    """Asserts that a scheduled function stores exactly what the naive one does; returns it.

    That holds for the function as the schedule made it and after lowering.
    """
    func = schedule.primfunc(name="f")
    expected = outputs(te.create_prim_func(None, "f", tensor))
    for found in (outputs(func), outputs(lowered(func))):
        assert found.keys() == expected.keys()
        for name, array in expected.items():
            assert np.array_equal(found[name], array), f"'{name}' differs:\n{schedule.text()}"
    return func


def local_shapes(func: PrimFunc) -> dict[str, tuple[object, ...]]:
    """Shapes of the arrays that a function brings to life."""
    allocated: list[Buffer] = [n.buffer for n in walk(func) if isinstance(n, Allocate)]
    return {buffer.name: tuple(buffer.shape) for buffer in allocated if buffer.shape}
