from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtir import te
from microtir.dtype import DType
from microtir.errors import TirError
from microtir.tir.ir import FloatImm, IntImm, Intrinsic
from tests.te.running import run

INT = te.placeholder((4,), DType.INT32, "x")
BYTES = te.placeholder((4,), DType.INT8, "b")
REAL = te.placeholder((4,), DType.FLOAT32, "f")


def evaluate(body: Callable[[te.Expr, te.Expr], te.ExprLike], a: int, b: int) -> object:
    """Value of ``body(a, b)`` on INT32, as compiled code would compute it."""
    x = te.placeholder((2,), DType.INT32, "x")
    y = te.compute((), lambda: body(x[0], x[1]), "y")
    func = te.create_prim_func([x, y], "f", y)
    return run(func, {"x": np.array([a, b], np.int32)})["y"].item()


@given(st.integers(-1000, 1000), st.integers(1, 1000))
def test_integer_operators_mean_what_python_means(a: int, b: int) -> None:
    """Every integer operator gives Python's result, with a handle on either side."""
    assert evaluate(lambda x, y: x + y, a, b) == a + b
    assert evaluate(lambda x, y: x - y, a, b) == a - b
    assert evaluate(lambda x, y: x * y, a, b) == a * b
    assert evaluate(lambda x, y: x // y, a, b) == a // b
    assert evaluate(lambda x, y: x % y, a, b) == a % b
    assert evaluate(lambda x, y: x >> (y % 8), a, b) == a >> (b % 8)
    assert evaluate(lambda x, y: x << (y % 8), a, b) == a << (b % 8)
    assert evaluate(lambda x, y: x & y, a, b) == a & b
    assert evaluate(lambda x, y: x | y, a, b) == a | b
    assert evaluate(lambda x, y: x ^ y, a, b) == a ^ b
    assert evaluate(lambda x, y: -x + 0 * y, a, b) == -a


@given(st.integers(-1000, 1000), st.integers(1, 31))
def test_python_number_may_stand_on_the_left(a: int, b: int) -> None:
    """The reflected operators keep the order of their operands."""
    assert evaluate(lambda x, _: 7 - x, a, b) == 7 - a
    assert evaluate(lambda x, _: 7 + x, a, b) == 7 + a
    assert evaluate(lambda x, _: 7 * x, a, b) == 7 * a
    assert evaluate(lambda _, y: 700 // y, a, b) == 700 // b
    assert evaluate(lambda _, y: 700 % y, a, b) == 700 % b
    assert evaluate(lambda _, y: 1 << (y % 16), a, b) == 1 << (b % 16)
    assert evaluate(lambda _, y: 4096 >> (y % 16), a, b) == 4096 >> (b % 16)
    assert evaluate(lambda x, _: 12 & x, a, b) == 12 & a
    assert evaluate(lambda x, _: 12 | x, a, b) == 12 | a
    assert evaluate(lambda x, _: 12 ^ x, a, b) == 12 ^ a


@given(st.integers(-9, 9), st.integers(-9, 9))
def test_comparisons_and_logic_give_bool(a: int, b: int) -> None:
    """Comparisons are BOOL expressions; `& | ~` join them."""
    assert evaluate(lambda x, y: x < y, a, b) == (a < b)
    assert evaluate(lambda x, y: x <= y, a, b) == (a <= b)
    assert evaluate(lambda x, y: x > y, a, b) == (a > b)
    assert evaluate(lambda x, y: x >= y, a, b) == (a >= b)
    assert evaluate(lambda x, y: x == y, a, b) == (a == b)
    assert evaluate(lambda x, y: x != y, a, b) == (a != b)
    both = evaluate(lambda x, y: (x < 3) & ~(y < 3) | (x == y), a, b)
    assert both == ((a < 3 and not b < 3) or a == b)


@given(st.integers(-1000, 1000), st.integers(-1000, 1000).filter(bool))
def test_functions_mean_what_their_names_say(a: int, b: int) -> None:
    """Extrema, clamp, absolute value, truncating division and select follow their definitions."""
    assert evaluate(te.minimum, a, b) == min(a, b)
    assert evaluate(te.maximum, a, b) == max(a, b)
    assert evaluate(lambda x, _: te.clamp(x, -128, 127), a, b) == max(-128, min(127, a))
    assert evaluate(lambda x, _: te.abs(x), a, b) == abs(a)
    assert evaluate(te.truncdiv, a, b) == int(a / b)
    assert evaluate(lambda x, y: te.select(x < y, x, 0), a, b) == (a if a < b else 0)
    assert evaluate(lambda x, _: te.rounding_divide_by_pot(x, 0), a, b) == a


def test_float_functions_mean_what_their_names_say() -> None:
    """The float functions agree with numpy on values inside their domains."""
    values = np.array([0.25, 0.5, 1.5, 2.75], np.float32)

    def each(function: Callable[[te.Expr], te.Expr]) -> list[float]:
        y = te.compute((4,), lambda i: function(REAL[i]), "y")
        result = run(te.create_prim_func([REAL, y], "f", y), {"f": values})["y"]
        return [float(v) for v in result]

    assert each(te.exp) == pytest.approx(np.exp(values).tolist())
    assert each(te.log) == pytest.approx(np.log(values).tolist())
    assert each(te.sqrt) == pytest.approx(np.sqrt(values).tolist())
    assert each(te.tanh) == pytest.approx(np.tanh(values).tolist())
    assert each(te.floor) == [0.0, 0.0, 1.0, 2.0]
    assert each(te.sin) == pytest.approx(np.sin(values).tolist())
    assert each(te.cos) == pytest.approx(np.cos(values).tolist())
    assert each(te.ceil) == [1.0, 1.0, 2.0, 3.0]
    assert each(te.round) == [0.0, 1.0, 2.0, 3.0]
    assert each(lambda v: te.round_half_to_even(v * 2.0)) == [0.0, 1.0, 3.0, 6.0]
    assert each(lambda v: te.abs(-v)) == values.tolist()
    assert each(lambda v: 1.0 / v) == pytest.approx((1 / values).tolist())
    assert each(lambda v: v / 2) == (values / 2).tolist()


def test_fixed_point_helpers_name_their_intrinsics() -> None:
    """Each helper builds the call of its intrinsic."""
    x = INT[0]
    for helper, intrinsic, args in (
        (te.multiply_by_quantized_multiplier, "multiply_by_quantized_multiplier", (x, 1, 2)),
        (te.saturating_rounding_doubling_high_mul, "saturating_rounding_doubling_high_mul", (x, 1)),
        (
            te.multiply_by_reduced_multiplier,
            "multiply_by_reduced_multiplier",
            (te.cast(DType.INT64, x), 1, 2),
        ),
        (te.saturating_shift_left, "saturating_shift_left", (x, 3)),
        (te.rounding_divide_by_pot, "rounding_divide_by_pot", (x, 3)),
        (te.count_leading_zeros, "count_leading_zeros", (te.cast(DType.UINT32, x),)),
    ):
        direct = te.call(Intrinsic(intrinsic), *args)
        assert helper(*args).node == direct.node


def test_number_takes_the_type_of_the_other_operand() -> None:
    """A Python or numpy number becomes a literal of the handle's type."""
    assert (BYTES[0] + 1).dtype is DType.INT8
    assert (REAL[0] * 2).dtype is DType.FLOAT32
    assert (np.int64(3) * INT[0]).dtype is DType.INT32
    assert te.select(INT[0] > 0, BYTES[0], 0).dtype is DType.INT8
    assert te.as_expr(0.5).node == FloatImm(0.5)
    assert te.const(3, DType.INT16).node == IntImm(3, DType.INT16)
    assert te.as_expr(np.True_).dtype is DType.BOOL


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BYTES[0] * INT[0], r"'b\[0\]' is int8, 'x\[0\]' is int32"),
        (lambda: te.select(INT[0] > 0, BYTES[0], INT[0]), "int8.*int32"),
        (lambda: INT[0] + 0.5, "0.5 cannot be combined with an operand of type int32"),
        (lambda: BYTES[0] + 300, "300 does not fit int8"),
        (lambda: ~INT[0], "'~' needs a bool"),
        (lambda: te.select(INT[0], 1, 2), "' is int32, not bool"),
        (lambda: bool(INT[0] < 3), "cannot use as a condition"),
        (lambda: INT[0] + INT, "a value of type Tensor cannot be part of an expression"),  # type: ignore[arg-type]
        (lambda: te.exp(INT[0]), "needs float32"),
        (lambda: te.call(Intrinsic.EXP), "takes 1 arguments, but got 0"),
        (lambda: INT[REAL[0]], "has the type float32"),
        (lambda: INT[0, 1], "2 indices for a tensor of rank 1"),
        (lambda: te.reduce_axis(0, BYTES[0], "k"), "is int8"),
        (lambda: te.var("n", 3, 2), r"\[3, 2\] is empty"),
        (lambda: te.constant(np.zeros(2, np.complex64), "c"), "complex64"),
        (lambda: te.placeholder((-1,), DType.INT8, "p"), "negative"),
    ],
)
def test_wrong_types_are_named(make: Callable[[], object], message: str) -> None:
    """A mistake in an expression is an error that names the operand and its type."""
    with pytest.raises(TirError, match=message):
        make()


def test_constant_is_a_copy() -> None:
    """Writing to the caller's array after the fact does not change the program."""
    data = np.zeros(3, np.int8)
    tensor = te.constant(data, "c")
    data[0] = 5
    assert tensor.buffer.data is not None and tensor.buffer.data[0] == 0
