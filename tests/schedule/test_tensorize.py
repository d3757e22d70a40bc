from __future__ import annotations

import numpy as np
import pytest

from microtir import te
from microtir.dtype import DType
from microtir.errors import ScheduleError, TirError
from microtir.schedule import KernelDescription, Schedule
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.ir import KernelCall, KernelContract, Region
from microtir.tir.text import parse_function
from microtir.tir.verify import verify
from microtir.tir.visitor import walk
from tests.schedule.programs import arguments, check_meaning, matmul
from tests.te.running import run

MAC4 = """
func mac4(acc: int32[4], x: int32[1], w: int32[4]):
  for j in range(0, 4):
    acc[j] = acc[j] + x[0] * w[j]
"""


def kernel(text: str, *, alignment: int = 1) -> KernelDescription:
    """A kernel with a contract that covers the whole of its parameters."""
    meaning = parse_function(text)
    buffers = [p for p in meaning.params if not hasattr(p, "low")]
    written = buffers[:1]

    def whole(names: list[object]) -> tuple[Region, ...]:
        regions = []
        for buffer in names:
            extent = tuple(int(d) for d in buffer.shape)  # type: ignore[attr-defined]
            start = tuple(te.as_expr(0).node for _ in extent)
            regions.append(Region(buffer, start, extent))  # type: ignore[arg-type]
        return tuple(regions)

    contract = KernelContract(whole([*buffers]), whole([*written]), alignment)
    return KernelDescription(meaning, contract, assembly="mac4_armv7em")


def blocked(cols: int = 8, alignment: int = 1) -> tuple[te.Tensor, Schedule]:
    """A product whose innermost loop adds one row of weights to four accumulators."""
    x = te.placeholder((5, 6), DType.INT32, "x")
    w = te.placeholder((6, cols), DType.INT32, "w", alignment=alignment)
    k = te.reduce_axis(0, 6, "k")
    y = te.compute((5, cols), lambda i, j: te.sum(x[i, k] * w[k, j], k) + 1, "y")
    s = te.create_schedule(y)
    _, inner = s.split(s.loop(y, "j"), 4)
    s.cache_write(inner)
    s.reorder(s.loop(y, "k"), inner)
    return y, s


def test_tensorize_replaces_the_block_and_keeps_the_meaning() -> None:
    """The call passes the elements that the block starts with."""
    y, s = blocked()
    s.tensorize(s.loop(y, "j_inner"), kernel(MAC4))
    func = check_meaning(s, y)
    (call,) = [node for node in walk(func) if isinstance(node, KernelCall)]
    assert call.template == "mac4_armv7em"
    assert "call mac4(sum at [0], x at [i, k], w at [k, j_outer * 4])" in s.text()


def test_scalar_argument_is_read_from_the_nest() -> None:
    """A Var of the kernel becomes the expression that stands in its place."""
    y, s = blocked()
    text = """
func axpy4(acc: int32[4], x: int32, w: int32[4]):
  for j in range(0, 4):
    acc[j] = acc[j] + x * w[j]
"""
    s.tensorize(s.loop(y, "j_inner"), kernel(text))
    verify(s.primfunc(name="f"))
    check_meaning(s, y)


def test_kernel_with_two_loops_needs_the_strides_of_the_nest() -> None:
    """A kernel over rows fits a buffer with its row length and no other."""
    text = """
func copy(y: int32[2, 8], x: int32[2, 8]):
  for r in range(0, 2):
    for c in range(0, 4):
      y[r, c] = x[r, c]
"""
    for cols in (8, 12):
        x = te.placeholder((6, cols), DType.INT32, "x")
        y = te.compute((6, cols), lambda r, c: x[r, c], "y")  # noqa: B023  # read at once
        s = te.create_schedule(y)
        _, ri = s.split(s.loop(y, "r"), 2)
        co, ci = s.split(s.loop(y, "c"), 4)
        s.reorder(co, ri, ci)
        if cols == 8:
            s.tensorize(ri, kernel(text))
            verify(s.primfunc(name="f"))
        else:
            with pytest.raises(ScheduleError, match="with other strides"):
                s.tensorize(ri, kernel(text))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "range(0, 4)",
            "range(0, 5)",
            r"'j_inner' over \[0, 4\), but the kernel the loop 'j' over \[0, 5\)",
        ),
        ("x[0] * w[j]", "x[0] - w[j]", "the loops have"),
        ("w[j]", "w[0]", "other strides"),
        ("w[j]", "w[3 - j]", "other strides"),
        ("acc[j] = acc[j] +", "acc[j] = acc[0] +", "other strides"),
        ("w: int32[4]", "w: int16[4]", "type int32"),
        ("w: int32[4]", "w: int32[4], unused: int32[1]", "parameter 'unused'"),
        ("x[0] * w[j]", "w[j] * x[0]", "x"),
    ],
)
def test_first_difference_is_named(old: str, new: str, message: str) -> None:
    """A kernel with another meaning is refused, and the message shows where they part."""
    y, s = blocked()
    before = s.body
    text = MAC4.replace(old, new)
    if "int16" in new:
        text = text.replace("x[0] * w[j]", "x[0] * cast(int32, w[j])")
        message = "the loops have"
    with pytest.raises(ScheduleError, match=message):
        s.tensorize(s.loop(y, "j_inner"), kernel(text))
    assert s.body is before


def test_statement_of_another_kind_is_a_difference() -> None:
    """A loop is no store, and a guard is no loop."""
    y, s = blocked(cols=7)
    with pytest.raises(ScheduleError, match="the statement 'If'"):
        s.tensorize(s.loop(y, "j_inner"), kernel(MAC4))
    naive = matmul()
    s = te.create_schedule(naive)
    with pytest.raises(ScheduleError, match="LOCAL buffer 'sum'"):
        s.tensorize(s.loop(naive, "j"), kernel(MAC4.replace("range(0, 4)", "range(0, 7)")))


def test_alignment_is_shown_or_refused() -> None:
    """A kernel that needs aligned pointers gets them where tensor and blocks are aligned."""
    y, s = blocked(alignment=16)
    description = kernel(MAC4, alignment=4)
    s.tensorize(s.loop(y, "j_inner"), description)
    check_meaning(s, y)

    y, s = blocked(alignment=4)
    with pytest.raises(ScheduleError, match="multiples of 16"):
        s.tensorize(s.loop(y, "j_inner"), kernel(MAC4, alignment=16))


def test_written_buffer_may_not_be_another_parameter() -> None:
    """A kernel may write before it reads, so its output cannot be its input."""
    text = """
func double(y: int32[4], x: int32[4]):
  for j in range(0, 4):
    y[j] = x[j + 1] * 2
"""
    x = te.placeholder((9,), DType.INT32, "x")
    t = te.compute((8,), lambda i: x[i], "t", store=lambda i: (i,), buffer_shape=(9,))
    u = te.compute((4,), lambda i: t[i + 1] * 2, "u", store=lambda i: (i,), into=t)
    s = te.create_schedule([t, u])
    with pytest.raises(ScheduleError, match="'t' would be passed as 'y'"):
        s.tensorize(s.loop(u, "i"), kernel(text))


def test_over_read_of_a_contract_is_proven_with_the_function() -> None:
    """A contract that reaches outside a buffer is found by the proof of all accesses."""
    y, s = blocked()
    description = kernel(MAC4)
    params = description.meaning.params
    zero = te.as_expr(0).node
    reads = (*description.contract.reads[:2], Region(params[2], (zero,), (9,)))  # type: ignore[arg-type]
    contract = KernelContract(reads, description.contract.writes)
    s.tensorize(s.loop(y, "j_inner"), KernelDescription(description.meaning, contract))
    func = s.primfunc(name="f")
    with pytest.raises(TirError, match="the contract of 'mac4' accesses elements outside 'w'"):
        prove_accesses(func)
    assert np.any(run(func, arguments(func))["y"])
