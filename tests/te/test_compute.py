from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir import te
from microtir.dtype import DType
from microtir.errors import ScheduleError, TirError
from microtir.tir.ir import Allocate, Binary, BinaryOp, Buffer, For, Let, Load, PrimFunc, Scope, Var
from microtir.tir.visitor import walk
from tests.te.running import run

I8, I32, F32 = DType.INT8, DType.INT32, DType.FLOAT32


def loops(func: PrimFunc) -> list[str]:
    """Names of the loops in the order of the text."""
    return [node.var.name for node in walk(func) if isinstance(node, For)]


@given(st.integers(1, 5), st.integers(0, 6), st.integers(1, 5), st.integers(0, 99))
@settings(max_examples=20)
def test_matmul_with_bias_is_numpys(rows: int, depth: int, cols: int, seed: int) -> None:
    """A sum with an init accumulates in order and its epilogue sees the whole sum."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(-128, 128, (depth, cols)).astype(np.int8)
    bias = rng.integers(-999, 999, cols).astype(np.int32)
    data = rng.integers(-128, 128, (rows, depth)).astype(np.int8)
    x, w, b = (
        te.placeholder((rows, depth), I8, "x"),
        te.constant(weights, "w"),
        te.constant(bias, "b"),
    )
    k = te.reduce_axis(0, depth, "k")
    y = te.compute(
        (rows, cols),
        lambda i, j: te.sum(te.cast(I32, x[i, k]) * te.cast(I32, w[k, j]), k, init=b[j]) + 1,
        "y",
    )
    result = run(te.create_prim_func([x, y], "f", y), {"x": data})["y"]
    assert np.array_equal(result, data.astype(np.int32) @ weights.astype(np.int32) + bias + 1)


def test_softmax_computes_maximum_and_sum_once_per_row() -> None:
    """Nested reductions are emitted in evaluation order, outside the loop that only reads them."""
    x = te.placeholder((3, 5), F32, "x")
    k, m = te.reduce_axis(0, 5, "k"), te.reduce_axis(0, 5, "m")

    def body(row: te.Expr, col: te.Expr) -> te.Expr:
        highest = te.max(x[row, m], m)
        total = te.sum(te.exp(x[row, k] - highest), k)
        return te.exp(x[row, col] - highest) / total

    y = te.compute((3, 5), body, "y")
    func = te.create_prim_func([x, y], "softmax", y)
    assert loops(func) == ["row", "m", "k", "col"]
    data = np.random.default_rng(1).normal(size=(3, 5)).astype(np.float32)
    expected = np.exp(data) / np.exp(data).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(run(func, {"x": data})["y"], expected, rtol=1e-5)


def test_one_reduction_object_read_twice_is_emitted_once() -> None:
    """The same reduction in two places is one accumulator; an equal one is another."""
    x = te.placeholder((4,), I32, "x")
    k = te.reduce_axis(0, 4, "k")

    def twice(i: te.Expr) -> te.Expr:
        total = te.sum(x[k] + i, k)
        return total * total

    def apart(i: te.Expr) -> te.Expr:
        return te.sum(x[k] + i, k) * te.sum(x[k] + i, k)

    for body, count in ((twice, 1), (apart, 2)):
        y = te.compute((2,), body, "y")
        func = te.create_prim_func([x, y], "f", y)
        assert len(loops(func)) == 1 + count
        assert run(func, {"x": np.arange(4, dtype=np.int32)})["y"].tolist() == [36, 100]


def test_bind_is_a_let_at_the_outermost_loop_that_defines_it() -> None:
    """A bind that only depends on the row is computed in the row loop, and once."""
    x = te.placeholder((3, 4), I32, "x")

    def body(row: te.Expr, col: te.Expr) -> te.Expr:
        first = te.bind("first", x[row, 0] * 3)
        return first * first + x[row, col]

    y = te.compute((3, 4), body, "y")
    func = te.create_prim_func([x, y], "f", y)
    row = next(n for n in walk(func) if isinstance(n, For))
    assert isinstance(row.body, Let) and row.body.var.name == "first"
    data = np.arange(12, dtype=np.int32).reshape(3, 4)
    assert np.array_equal(run(func, {"x": data})["y"], (data[:, :1] * 3) ** 2 + data)


def test_reduction_bounds_may_depend_on_outer_axes() -> None:
    """A window is clipped at the borders by the bounds of its reduction axes."""
    x = te.placeholder((6, 5), I32, "x")

    def body(row: te.Expr, col: te.Expr) -> te.Expr:
        dy = te.reduce_axis(te.maximum(0, 1 - row), te.minimum(3, 7 - row), "dy")
        dx = te.reduce_axis(te.maximum(0, 1 - col), te.minimum(3, 6 - col), "dx")
        return te.sum(x[row + dy - 1, col + dx - 1], [dy, dx])

    y = te.compute((6, 5), body, "y")
    data = np.random.default_rng(2).integers(-99, 99, (6, 5)).astype(np.int32)
    padded = np.pad(data, 1)
    expected = sum(padded[i : i + 6, j : j + 5] for i in range(3) for j in range(3))
    assert np.array_equal(run(te.create_prim_func([x, y], "f", y), {"x": data})["y"], expected)


def test_inner_axis_may_depend_on_an_outer_reduction_axis() -> None:
    """A triangular reduction runs over the triangle."""
    x = te.placeholder((4, 4), I32, "x")
    i = te.reduce_axis(0, 4, "i")
    j = te.reduce_axis(i, 4, "j")
    y = te.compute((), lambda: te.sum(x[i, j], (i, j)), "y")
    data = np.arange(16, dtype=np.int32).reshape(4, 4)
    assert run(te.create_prim_func([x, y], "f", y), {"x": data})["y"] == np.triu(data).sum()


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT32, DType.UINT8, DType.FLOAT32])
@pytest.mark.parametrize("count", [0, 4])
def test_extrema_have_the_identity_of_their_type(dtype: DType, count: int) -> None:
    """An empty maximum is the lowest value of the type, an empty minimum the highest."""
    x = te.placeholder((4,), dtype, "x")
    limits = np.finfo(dtype.value) if dtype.is_float else np.iinfo(dtype.value)
    k = te.reduce_axis(0, count, "k")
    high = te.compute((), lambda: te.max(x[k], k), "high")
    low = te.compute((), lambda: te.min(x[k], k), "low")
    data = np.array([3, 1, 4, 1], dtype.value)
    result = run(te.create_prim_func([x, high, low], "f", [high, low]), {"x": data})
    assert result["high"] == (4 if count else limits.min)
    assert result["low"] == (1 if count else limits.max)


def test_lazy_reduction_is_refused_with_the_reason() -> None:
    """A reduction that only an arm of a select reads would be evaluated before the choice."""
    x = te.placeholder((4,), I32, "x")
    k = te.reduce_axis(0, 4, "k")
    y = te.compute((2,), lambda i: te.select(i > 0, te.sum(x[k], k), 0), "y")
    with pytest.raises(TirError, match="reduction 'sum' is read only in a branch of a select"):
        te.create_schedule(y)
    z = te.compute((2,), lambda i: (i > 0) & (te.bind("b", x[i - 1]) > 0), "z")
    with pytest.raises(TirError, match="bind 'b' is read only in a branch"):
        te.create_schedule(z)


def test_value_of_the_condition_may_be_read_in_an_arm() -> None:
    """A bind that the condition evaluates anyway may be read in the arms."""
    x = te.placeholder((4,), I32, "x")

    def body(i: te.Expr) -> te.Expr:
        value = te.bind("value", x[i])
        return te.select(value > 0, value, -value)

    y = te.compute((4,), body, "y")
    data = np.array([3, -4, 0, -9], np.int32)
    assert run(te.create_prim_func([x, y], "f", y), {"x": data})["y"].tolist() == [3, 4, 0, 9]


def test_sum_where_a_condition_holds() -> None:
    """Other terms are neither added nor evaluated; a value of theirs alone is refused."""
    x = te.placeholder((4,), F32, "x")
    k = te.reduce_axis(-2, 6, "k")
    inside = (k >= 0) & (k < 4)
    y = te.compute((1,), lambda i: te.sum(x[i + k], k, init=-0.0, where=inside), "y")
    data = np.array([-0.0] * 4, np.float32)
    result = run(te.create_prim_func([x, y], "f", y), {"x": data})["y"]
    assert np.signbit(result[0])  # a zero that is added would make it positive
    z = te.compute((1,), lambda i: te.sum(te.bind("b", x[i + k]), k, where=inside), "z")
    with pytest.raises(TirError, match="bind 'b' is read only in a branch"):
        te.create_schedule(z)


def test_axis_outside_its_reduction_is_named() -> None:
    """A reduction axis that no reduction binds is an error that names it."""
    x = te.placeholder((4,), I32, "x")
    k = te.reduce_axis(0, 4, "k")
    y = te.compute((4,), lambda i: x[i] + k, "y")
    with pytest.raises(TirError, match="'k' is used outside"):
        te.create_schedule(y)
    z = te.compute((4,), lambda i: te.bind("b", x[k]) + i, "z")
    with pytest.raises(TirError, match="'k' is used outside"):
        te.create_schedule(z)


def test_dropped_operand_needs_nothing() -> None:
    """What folding removes is neither computed nor an input."""
    x, z = te.placeholder((4,), I32, "x"), te.placeholder((4,), I32, "z")
    k = te.reduce_axis(0, 4, "k")
    y = te.compute((4,), lambda i: x[i] + 0 * te.sum(z[k], k), "y")
    func = te.create_prim_func(None, "f", y)
    assert [p.name for p in func.params] == ["x", "y"]
    assert loops(func) == ["i"]


def test_row_range_restricts_an_axis() -> None:
    """Only the rows [y0, y1) are stored, for every pair of parameters."""
    x = te.placeholder((5, 2), I32, "x")
    y0, y1 = te.var("y0", 0, 5), te.var("y1", 0, 5)
    y = te.compute((5, 2), lambda row, col: x[row, col] + 1, "y", ranges={0: (y0, y1)})
    func = te.create_prim_func([x, y, y0, y1], "f", y)
    data = np.arange(10, dtype=np.int32).reshape(5, 2)
    for first in range(6):
        for last in range(6):
            result = run(func, {"x": data, "y0": first, "y1": last})["y"]
            expected = np.zeros_like(data)
            expected[first:last] = data[first:last] + 1
            assert np.array_equal(result, expected)


def test_ring_storage_is_written_and_read_through_the_map() -> None:
    """Rows of a ring lie in slot row % R; a later stage reads them by their logical index."""
    x = te.placeholder((6, 2), I32, "x")
    ring = te.compute(
        (6, 2), lambda row, col: x[row, col] * 2, "ring", ranges={0: (3, 6)},
        store=lambda row, col: (row % 3, col), buffer_shape=(3, 2),
    )  # fmt: skip
    y = te.compute((6, 2), lambda row, col: ring[row, col] + 1, "y", ranges={0: (3, 6)})
    func = te.create_prim_func([x, y], "f", y)
    assert [n.buffer.shape for n in walk(func) if isinstance(n, Allocate)] == [(3, 2)]
    data = np.arange(12, dtype=np.int32).reshape(6, 2)
    assert np.array_equal(run(func, {"x": data})["y"][3:], data[3:] * 2 + 1)


def test_planar_storage_transposes() -> None:
    """An output may be stored in another order than that of its axes."""
    x = te.placeholder((2, 3, 4), I32, "x")
    y = te.compute(
        (2, 3, 4), lambda h, w, c: x[h, w, c], "y",
        store=lambda h, w, c: (h, c, w), buffer_shape=(2, 4, 3),
    )  # fmt: skip
    data = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    result = run(te.create_prim_func([x, y], "f", y), {"x": data})["y"]
    assert np.array_equal(result, data.transpose(0, 2, 1))


def test_two_computations_fill_one_buffer() -> None:
    """`into` puts a second tensor beside the first one: a concatenation."""
    a, b = te.placeholder((2, 3), I32, "a"), te.placeholder((2, 1), I32, "b")
    left = te.compute(
        (2, 3), lambda i, j: a[i, j], "y", store=lambda i, j: (i, j), buffer_shape=(2, 4)
    )
    right = te.compute(
        (2, 1), lambda i, j: b[i, j], "b_part", store=lambda i, j: (i, j + 3), into=left
    )
    func = te.create_prim_func(None, "concat", [left, right])
    assert [p.name for p in func.params] == ["a", "b", "y"]
    first, second = np.arange(6, dtype=np.int32).reshape(2, 3), np.array([[8], [9]], np.int32)
    result = run(func, {"a": first, "b": second})["y"]
    assert np.array_equal(result, np.concatenate([first, second], axis=1))


def test_intermediate_is_local_and_names_are_unique() -> None:
    """A stage that another one reads lives in a LOCAL buffer; equal axis names are told apart."""
    x = te.placeholder((4,), I32, "x")
    t = te.compute((4,), lambda i: x[i] + 1, "t")
    y = te.compute((4,), lambda i: t[i] * t[3 - i], "y")
    func = te.create_prim_func([x, y], "f", y)
    assert loops(func) == ["i", "i_1"]
    assert isinstance(func.body, Allocate) and func.body.buffer.scope is Scope.LOCAL
    data = np.arange(4, dtype=np.int32)
    assert run(func, {"x": data})["y"].tolist() == ((data + 1) * (data + 1)[::-1]).tolist()


def test_runtime_extent_gives_an_intermediate_room_for_the_largest() -> None:
    """A Var in a shape is a loop bound; a LOCAL buffer takes its highest value."""
    n = te.var("n", 1, 7)
    x = te.placeholder((n,), I32, "x")
    t = te.compute((n,), lambda i: x[i] + 1, "t")
    y = te.compute((n,), lambda i: t[n - 1 - i], "y")
    func = te.create_prim_func(None, "f", y)
    assert [p.name for p in func.params] == ["x", "n", "y"]
    assert isinstance(func.body, Allocate) and func.body.buffer.shape == (7,)
    data = np.arange(3, dtype=np.int32)
    assert run(func, {"x": data, "n": 3})["y"].tolist() == [3, 2, 1]


def test_axis_names_come_from_the_body_or_from_axes() -> None:
    """The parameters of the body name the loops unless `axes` does."""
    x = te.placeholder((2, 2), I32, "x")
    y = te.compute((2, 2), lambda row, col: x[row, col], "y")
    z = te.compute((2, 2), lambda row, col: x[row, col], "z", axes=("h", "w"))
    v = te.compute((2, 2), lambda *i: x[i], "v")
    assert loops(te.create_prim_func(None, "f", [y, z, v])) == ["row", "col", "h", "w", "i0", "i1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"axes": ("i",)}, "1 axes .* rank 2"),
        ({"ranges": {2: (0, 1)}}, "axis 2"),
        ({"buffer_shape": (4,)}, "only with store"),
        ({"store": lambda i, j: (i, j)}, "needs buffer_shape"),
        ({"store": lambda i, _: (i,), "buffer_shape": (2, 2)}, "store gives 1 indices for rank 2"),
        ({"store": lambda i, j: (i, te.bind("b", j)), "buffer_shape": (2, 2)}, "must not read"),
        ({"store": lambda i, j: (i, j), "into": te.placeholder((2, 2), I32, "p")}, "computed"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    """Every option of compute is honoured or refused with the reason."""
    with pytest.raises(TirError, match=message):
        te.compute((2, 2), lambda i, j: i + j, "y", **options)  # type: ignore[arg-type]


def test_wrong_reductions_are_refused() -> None:
    """A reduction needs distinct axes, a number to reduce and an init of its type."""
    x = te.placeholder((4,), I32, "x")
    k = te.reduce_axis(0, 4, "k")
    with pytest.raises(TirError, match="at least one axis"):
        te.sum(x[0], [])
    with pytest.raises(TirError, match="twice"):
        te.sum(x[k], [k, k])
    with pytest.raises(TirError, match="is bool"):
        te.max(x[k] > 0, k)
    with pytest.raises(TirError, match=r"is int8, but the reduced value 'x\[k\]' is int32"):
        te.sum(x[k], k, init=te.const(0, I8))
    with pytest.raises(TirError, match=r"the condition 'x\[k\]' is int32, not bool"):
        te.sum(x[k], k, where=x[k])


def test_outputs_are_checked() -> None:
    """An output is a computed tensor, and is named once."""
    x = te.placeholder((4,), I32, "x")
    y = te.compute((4,), lambda i: x[i], "y")
    for outputs in ([], [x], [y, y]):
        with pytest.raises(TirError, match="output"):
            te.create_schedule(outputs)


# --- arguments of the function ------------------------------------------------------------------


def simple() -> tuple[te.Tensor, te.Tensor, te.ScalarVar, te.Tensor, te.Tensor]:
    """x, the constant w, the scalar n, the intermediate t and the output y = (x + w) * n."""
    x, w = te.placeholder((4,), I32, "x"), te.constant(np.arange(4, dtype=np.int32), "w")
    n = te.var("n", 1, 9)
    t = te.compute((4,), lambda i: x[i] + w[i], "t")
    return x, w, n, t, te.compute((4,), lambda i: t[i] * n, "y")


DATA = np.array([5, 6, 7, 8], np.int32)
EXPECTED = ((DATA + np.arange(4)) * 3).tolist()


def test_default_arguments_are_inputs_scalars_outputs() -> None:
    """Without args: placeholders in order of use, then Vars, then outputs; no constants."""
    *_, y = simple()
    func = te.create_schedule(y).primfunc(name="f")
    assert [p.name for p in func.params] == ["x", "n", "y"]
    assert run(func, {"x": DATA, "n": 3})["y"].tolist() == EXPECTED


def test_arguments_may_be_tensors_buffers_and_vars_in_any_order() -> None:
    """The order of args is the order of the parameters."""
    x, _, n, _, y = simple()
    func = te.create_schedule(y).primfunc([n.var, y.buffer, x], "f")
    assert func.params == (n.var, y.buffer, x.buffer)
    assert run(func, {"x": DATA, "n": 3})["y"].tolist() == EXPECTED


def test_constant_and_intermediate_in_args_become_parameters() -> None:
    """A constant that is named is passed in by the caller; an intermediate is stored for him."""
    x, w, n, t, y = simple()
    func = te.create_schedule(y).primfunc([x, w, n, t, y], "f")
    assert all(isinstance(p, Var) or p.scope is Scope.PARAMETER for p in func.params)
    ones = np.ones(4, np.int32)
    result = run(func, {"x": DATA, "w": ones, "n": 3})
    assert result["t"].tolist() == (DATA + 1).tolist()
    assert result["y"].tolist() == ((DATA + 1) * 3).tolist()


def test_unused_argument_stays_a_parameter() -> None:
    """A caller with a fixed signature may pass what is not read."""
    x, _, n, _, y = simple()
    extra, m = te.placeholder((2,), I8, "extra"), te.var("m", 0, 1)
    func = te.create_schedule(y).primfunc([x, extra, n, m, y], "f")
    assert [p.name for p in func.params] == ["x", "extra", "n", "m", "y"]
    assert (
        run(func, {"x": DATA, "extra": np.zeros(2, np.int8), "n": 3, "m": 0})["y"].tolist()
        == EXPECTED
    )


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (("x", "y"), "variable 'n' is used, but is not an argument"),
        (("x", "n"), "'y' is used, but is not"),
        (("n", "y"), "'x' is used, but is not"),
        (("x", "n", "y", "x"), "two parameters are called 'x'"),
    ],
)
def test_missing_or_repeated_argument_is_named(chosen: tuple[str, ...], message: str) -> None:
    """What the function reads or stores and does not get is an error with its name."""
    x, _, n, _, y = simple()
    known: dict[str, te.Tensor | te.ScalarVar] = {"x": x, "n": n, "y": y}
    with pytest.raises(ScheduleError, match=message):
        te.create_schedule(y).primfunc([known[name] for name in chosen], "f")
    with pytest.raises(ScheduleError, match="not a valid function name"):
        te.create_schedule(y).primfunc(name="two words")


def test_binds_replace_the_storage_of_a_tensor() -> None:
    """Inputs, constants, intermediates and outputs live in the buffer that binds gives."""
    x, w, _, t, y = simple()
    binds = {
        x: Buffer("x2", (4,), I32, alignment=4),
        w: Buffer("w2", (4,), I32),
        t: Buffer("t2", (4,), I32),
        y: Buffer("y2", (4,), I32),
    }
    func = te.create_schedule(y).primfunc(None, "f", binds)
    assert [p.name for p in func.params] == ["x2", "w2", "t2", "n", "y2"]
    used = {node.buffer.name for node in walk(func) if isinstance(node, Load)}
    assert used == {"x2", "w2", "t2"}
    ones = np.ones(4, np.int32)
    result = run(func, {"x2": DATA, "w2": ones, "n": 3})
    assert result["y2"].tolist() == ((DATA + 1) * 3).tolist()


def test_bind_to_a_constant_freezes_an_input() -> None:
    """A placeholder may be bound to data: it is no parameter any more."""
    x, _, n, _, y = simple()
    frozen = te.constant(DATA, "frozen").buffer
    func = te.create_schedule(y).primfunc([n, y], "f", {x: frozen})
    assert run(func, {"n": 3})["y"].tolist() == EXPECTED


@pytest.mark.parametrize(
    ("which", "buffer", "message"),
    [
        ("x", Buffer("b", (5,), I32), "is 5 int32, but its tensor is 4 int32"),
        ("x", Buffer("b", (4,), I8), "int8"),
        ("y", Buffer("b", (4,), I32, Scope.LOCAL), "scope local"),
        ("x", Buffer("b", (4,), I32, Scope.WORKSPACE), "scope workspace"),
        ("other", Buffer("b", (4,), I32), "the schedule does not use 'other'"),
    ],
)
def test_bind_that_does_not_fit_is_refused(which: str, buffer: Buffer, message: str) -> None:
    """Shape, type, scope and tensor of a bind are checked."""
    x, _, _, _, y = simple()
    tensors = {"x": x, "y": y, "other": te.placeholder((4,), I32, "other")}
    with pytest.raises(ScheduleError, match=message):
        te.create_schedule(y).primfunc(None, "f", {tensors[which]: buffer})


def test_two_tensors_in_one_buffer_are_refused() -> None:
    """Input and output may not be bound to the same storage."""
    x, _, _, _, y = simple()
    shared = Buffer("shared", (4,), I32)
    with pytest.raises(ScheduleError, match="already holds another tensor"):
        te.create_schedule(y).primfunc(None, "f", {x: shared, y: shared})
    with pytest.raises(ScheduleError, match="already holds another tensor"):
        te.create_schedule(y).primfunc(None, "f", {y: x.buffer})
    aligned = te.placeholder((4,), I32, "aligned", alignment=4)
    z = te.compute((4,), lambda i: aligned[i], "z")
    with pytest.raises(ScheduleError, match="aligned to 1 bytes"):
        te.create_schedule(z).primfunc(None, "f", {aligned: shared})


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.booleans(), st.integers(0, 99))
@settings(max_examples=20)
def test_scan_is_numpys_cumsum(outer: int, n: int, inner: int, last: bool, seed: int) -> None:
    """A running sum along any axis, which goes on where the loop of that axis is the inner one."""
    data = np.random.default_rng(seed).integers(-99, 99, (outer, n, inner)).astype(np.int32)
    x = te.placeholder((outer, n, inner), I32, "x")

    def total(i: te.Expr, j: te.Expr, k: te.Expr) -> te.Expr:
        step = k if last else te.bind("step", (n - 1) - k)
        return te.scan("total", lambda so_far, value: so_far + value, x[i, step, j], k, 0) * 2

    y = te.compute(
        (outer, inner, n), total, "y", store=lambda i, j, k: (i, k, j), buffer_shape=data.shape
    )
    result = run(te.create_prim_func([x, y], "f", y), {"x": data})["y"]
    expected = (data if last else data[:, ::-1]).cumsum(axis=1) * 2
    assert np.array_equal(result, expected)


def test_fold_combines_by_any_function() -> None:
    """Also BOOL, which no sum takes."""
    x = te.placeholder((3, 4), DType.BOOL, "x")
    k = te.reduce_axis(0, 4, "k")
    y = te.compute((3,), lambda i: te.fold("all", lambda a, b: a & b, x[i, k], k, True), "y")
    data = np.array([[1, 1, 1, 1], [1, 0, 1, 1], [0, 0, 0, 0]], np.bool_)
    result = run(te.create_prim_func([x, y], "f", y), {"x": data})["y"]
    assert np.array_equal(result, data.all(axis=1))


def test_scan_of_an_outer_loop_may_not_read_an_inner_one() -> None:
    """One accumulator cannot go on in many places."""
    x = te.placeholder((3, 4), I32, "x")
    y = te.compute((3, 4), lambda i, j: te.scan("t", lambda a, b: a + b, x[i, j], i, 0), "y")
    with pytest.raises(TirError, match="reads an axis inside it"):
        te.create_prim_func([x, y], "f", y)


def shares(x: te.Tensor, along: str = "j") -> te.Tensor:
    """Return what part of its row's sum of squares the square of each element is."""

    def element(i: te.Expr, j: te.Expr) -> te.Expr:
        k = te.reduce_axis(0, x.shape[1], "k")
        total = te.sum(x[i, k] * x[i, k], k)
        return te.term(total, {"i": i, "j": j}[along]) / total

    return te.compute(x.shape, element, "y")


def test_terms_are_computed_once() -> None:
    """A term lies in the result until the result is computed of it."""
    x = te.placeholder((3, 5), DType.FLOAT32, "x")
    func = te.create_prim_func([x, y := shares(x)], "f", y)
    data = np.arange(1, 16, dtype=np.float32).reshape(3, 5)
    result = run(func, {"x": data})["y"]
    squares = data * data
    assert np.array_equal(result, squares / squares.sum(axis=1, keepdims=True))
    products = [n for n in walk(func) if isinstance(n, Binary) and n.op is BinaryOp.MUL]
    assert len(products) == 1


def test_terms_belong_to_the_last_axis() -> None:
    """Each place of the result takes one term, of its own type, from a reduction."""
    x = te.placeholder((5, 5), DType.FLOAT32, "x")
    with pytest.raises(TirError, match="does not store its value at each index of 'i' in 'y'"):
        te.create_prim_func([x, y := shares(x, "i")], "f", y)
    with pytest.raises(TirError, match="is not a reduction"):
        te.compute((5, 5), lambda i, j: te.term(x[i, j], j), "y")


def test_terms_are_not_computed_in_parts() -> None:
    """A part of a row would store the terms of all of it."""
    x = te.placeholder((3, 5), DType.FLOAT32, "x")
    of_rows = shares(x)
    y = te.compute((3, 5), lambda i, j: of_rows[i, j] * 2.0, "z")
    schedule = te.create_schedule(y)
    with pytest.raises(ScheduleError):
        schedule.compute_at(of_rows, schedule.loop(y, "j"))


def test_scan_is_not_computed_in_parts() -> None:
    """A part of a running sum would begin anew."""
    x = te.placeholder((8,), I32, "x")
    total = te.compute((8,), lambda i: te.scan("t", lambda a, b: a + b, x[i], i, 0), "total")
    y = te.compute((8,), lambda i: total[i] * 2, "y")
    schedule = te.create_schedule(y)
    with pytest.raises(ScheduleError, match="depends on the previous element"):
        schedule.compute_at(total, schedule.loop(y, "i"))
