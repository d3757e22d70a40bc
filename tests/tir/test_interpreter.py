"""The interpreter: exact values, and an error for everything that is undefined."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.dtype import DType
from microtir.errors import InterpreterError
from microtir.tir import arithmetic
from microtir.tir.arithmetic import UndefinedError
from microtir.tir.interpreter import Interpreter, StepLimitError
from microtir.tir.ir import (
    Array,
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    For,
    IntImm,
    Load,
    PrimFunc,
    Stmt,
    Store,
    Var,
)
from microtir.tir.text import parse


def run(text: str, *args: Array | int, name: str = "f", uninitialised: tuple[str, ...] = ()) -> int:
    """Runs a function of a text; arrays are changed in place."""
    return Interpreter(parse(text)).run(name, list(args), uninitialised=uninitialised)


def bytes_(*values: int) -> Array:
    """An int8 array."""
    return np.array(values, np.int8)


# --- values -------------------------------------------------------------------------------------

_INTEGERS = [d for d in DType if d.is_int]
_OPS = [op for op in BinaryOp if op not in (BinaryOp.AND, BinaryOp.OR, BinaryOp.DIV)]


def binary(op: BinaryOp, dtype: DType, a: float, b: float) -> float:
    """The value of `a op b`, run by the interpreter on loaded operands."""
    buffer = Buffer("x", (2,), dtype)
    e = Binary(op, Load(buffer, (IntImm(0),)), Load(buffer, (IntImm(1),)))
    out = Buffer("out", (1,), DType.INT8 if e.dtype is DType.BOOL else dtype)
    value = Cast(DType.INT8, e) if e.dtype is DType.BOOL else e
    result = np.zeros(1, out.dtype.value)
    func = PrimFunc("f", (buffer, out), Store(out, (IntImm(0),), value))
    Interpreter([func]).run("f", [np.array([a, b], dtype.value), result])
    return float(result[0]) if dtype.is_float else int(result[0])


@pytest.mark.parametrize("dtype", _INTEGERS)
@given(data=st.data())
@settings(max_examples=120)
def test_integer_operators_mean_what_folding_means(dtype: DType, data: st.DataObject) -> None:
    """Every integer operator has the exact value that constant folding uses, or is an error."""
    small = st.integers(max(dtype.min, -9), 9)
    numbers = st.one_of(small, st.integers(dtype.min, dtype.max), st.just(dtype.min))
    check_binary(data.draw(st.sampled_from(_OPS)), dtype, data.draw(numbers), data.draw(numbers))


@pytest.mark.parametrize("dtype", [d for d in _INTEGERS if d.min < 0])
@pytest.mark.parametrize("op", [BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV])
def test_a_quotient_that_overflows_is_no_number(op: BinaryOp, dtype: DType) -> None:
    """The least number by -1: C leaves the remainder undefined with the quotient."""
    with pytest.raises(UndefinedError):
        arithmetic.binary(op, dtype, dtype.min, -1)
    check_binary(op, dtype, dtype.min, -1)


def check_binary(op: BinaryOp, dtype: DType, a: int, b: int) -> None:
    """The interpreter computes what folding does, or finds the error that it finds."""
    try:
        expected = arithmetic.binary(op, dtype, a, b)
    except UndefinedError:
        with pytest.raises(InterpreterError, match="function 'f'"):
            binary(op, dtype, a, b)
        return
    assert binary(op, dtype, a, b) == expected


_FLOAT_OPS = {
    BinaryOp.ADD: np.add, BinaryOp.SUB: np.subtract, BinaryOp.MUL: np.multiply,
    BinaryOp.DIV: np.divide,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT64])
@pytest.mark.parametrize("op", _FLOAT_OPS)
@given(data=st.data())
@settings(max_examples=80)
def test_float_operators_are_numpys(op: BinaryOp, dtype: DType, data: st.DataObject) -> None:
    """Float arithmetic rounds to its type after each operation, with IEEE special values."""
    floats = st.floats(width=32 if dtype is DType.FLOAT32 else 64)
    a, b = data.draw(floats), data.draw(floats)
    scalar = np.dtype(dtype.value).type
    with np.errstate(all="ignore"):
        expected = _FLOAT_OPS[op](scalar(a), scalar(b))
    np.testing.assert_equal(scalar(binary(op, dtype, a, b)), expected)


@given(st.floats(width=32), st.floats(width=32))
def test_float_extrema_are_the_c_expressions(a: float, b: float) -> None:
    """Minimum and maximum choose as `a < b ? a : b` does, NaN included."""
    low = binary(BinaryOp.MIN, DType.FLOAT32, a, b)
    np.testing.assert_equal(np.float32(low), np.float32(a if a < b else b))
    high = binary(BinaryOp.MAX, DType.FLOAT32, a, b)
    np.testing.assert_equal(np.float32(high), np.float32(a if a > b else b))


def test_sums_of_floats_are_rounded_at_each_step() -> None:
    """2^24 + 1 + 1 stays 2^24 in float32."""
    out = np.array([2.0**24], np.float32)
    run("func f(x: float32[1]):\n  x[0] = x[0] + 1.0 + 1.0", out)
    assert out[0] == 2.0**24


def test_convolution_equals_numpy() -> None:
    """A whole kernel with local accumulator, Let and requantisation."""
    random = np.random.default_rng(0)
    x = random.integers(-128, 128, (6, 5, 3)).astype(np.int8)
    w = random.integers(-128, 128, (2, 2, 3)).astype(np.int8)
    y = np.zeros((5, 4), np.int32)
    steps = run(
        f"""
constant w: int8[2, 2, 3] = "{w.tobytes().hex()}"
func f(x: int8[6, 5, 3], y: int32[5, 4]):
  for i in range(0, 5):
    for j in range(0, 4):
      alloc acc: int32[] local
      acc[] = 0
      for p in range(0, 2):
        for q in range(0, 2):
          for c in range(0, 3):
            let pixel: int32 = cast(int32, x[i + p, j + q, c])
            acc[] = acc[] + pixel * cast(int32, w[p, q, c])
      y[i, j] = rounding_divide_by_pot(acc[], 2)
""",
        x,
        y,
    )
    wide = x.astype(np.int64)
    exact = sum(
        wide[p : p + 5, q : q + 4] @ w[p, q].astype(np.int64) for p in range(2) for q in range(2)
    )
    away = np.sign(exact) * ((np.abs(exact) + 2) // 4)
    np.testing.assert_array_equal(y, away)
    assert steps == 1 + 5 + 5 * 4 + 5 * 4 * (2 + 4 + 12)


def test_selects_and_conditions_are_lazy() -> None:
    """What a condition protects is not evaluated."""
    out = np.zeros(2, np.int32)
    run(
        """
func f(x: int32[2]):
  let i: int32 = 7
  x[0] = select(i < 2, x[i], 5)
  if i >= 2 or x[i] > 0:
    x[1] = 1
  if i < 2 and x[i] > 0:
    x[1] = 2
""",
        out,
    )
    assert out.tolist() == [5, 1]


def test_every_life_of_a_buffer_starts_uninitialised() -> None:
    """What the last iteration stored to a local array is gone in the next."""
    text = """
func f(x: int8[2]):
  for i in range(0, 2):
    alloc t: int8[1] local
    x[1] = select(i > 0, t[0], x[0])
    t[0] = x[1]
"""
    with pytest.raises(InterpreterError, match=r"read before it is written: t\[0\]"):
        run(text, bytes_(1, 2))


def test_views_share_bytes() -> None:
    """Functions of a module see parts of one workspace, as the types that they want."""
    x, y = bytes_(1, 2, 3, 4), np.zeros(2, np.int32)
    run(
        """
func widen(x: int8[4], t: int32[2]):
  for i in range(0, 2):
    t[i] = cast(int32, x[i]) + cast(int32, x[i + 2])

func copy(t: int32[2], y: int32[2]):
  for i in range(0, 2):
    y[i] = t[i] * 1000

func f(x: int8[4], y: int32[2]):
  alloc w: uint8[16] align 4 workspace
  invoke widen(view(x, int8[4], 0), view(w, int32[2], 8))
  invoke copy(view(w, int32[2], 8), view(y, int32[2], 0))
""",
        x,
        y,
    )
    assert y.tolist() == [4000, 6000]


def test_kernels_run_from_pointers() -> None:
    """A KernelCall runs its meaning on the memory from an element on."""
    y = np.zeros(3, np.int32)
    run(
        """
meaning sum2(a: int8[2], out: int32[1]):
  out[0] = cast(int32, a[0]) + cast(int32, a[1])

func f(x: int8[2, 3], y: int32[3]):
  for i in range(0, 2):
    call sum2(x at [i, i], y at [i + 1])
""",
        np.arange(6, dtype=np.int8).reshape(2, 3),
        y,
    )
    assert y.tolist() == [0, 1, 9]


def test_overlapping_views_are_the_same_memory() -> None:
    """Writing through one view changes what another one reads."""
    out = bytes_(0, 0)
    run(
        """
func shift(x: int8[3], y: int8[3]):
  for i in range(0, 3):
    y[i] = x[i]

func f(y: int8[2]):
  alloc w: int8[4] workspace
  invoke fill(view(w, int8[4], 0))
  invoke shift(view(w, int8[3], 0), view(w, int8[3], 1))
  invoke last(view(w, int8[4], 0), view(y, int8[2], 0))

func fill(x: int8[4]):
  for i in range(0, 4):
    x[i] = cast(int8, i + 5)

func last(x: int8[4], y: int8[2]):
  y[0] = x[2]
  y[1] = x[3]
""",
        out,
    )
    assert out.tolist() == [5, 5]


# --- errors -------------------------------------------------------------------------------------

UNDEFINED = {
    "sum overflows": ("x[0] = x[0] + int8(127)", r"128 does not fit int8: x\[0\] \+ int8\(127\)"),
    "negation overflows": ("x[1] = -x[1]", r"128 does not fit int8: -x\[1\]"),
    "cast overflows": ("x[0] = cast(int8, 128)", "128 does not fit int8: cast"),
    "cast of NaN": ("x[0] = cast(int8, nan)", "nan does not fit int8"),
    "cast of a large float": ("x[0] = cast(int8, 1e10)", "10000000000 does not fit int8"),
    "shift overflows": ("x[0] = x[0] << int8(7)", "128 does not fit int8"),
    "shift count": ("x[0] = x[0] >> (x[0] + int8(7))", "shift count 8 is outside"),
    "division by zero": ("x[0] = floordiv(x[0], x[2])", "division by zero: floordiv"),
    "remainder of zero": ("x[0] = floormod(x[0], x[2])", "division by zero: floormod"),
    "quotient overflows": ("x[0] = truncdiv(x[1], -x[0])", "128 does not fit int8: truncdiv"),
    "intrinsic": ("x[0] = cast(int8, rounding_divide_by_pot(1, 40))", "exponent 40 is outside"),
    "load out of bounds": ("x[0] = x[4]", r"index 4 of axis 0 is outside \[0, 4\): x\[4\]"),
    "negative index": ("let i: int32 = 0 - 1\n  x[i] = int8(1)", "index -1 of axis 0"),
    "second axis": ("y[0, 2] = int8(1)", r"index 2 of axis 1 is outside \[0, 2\): y\[0, 2\]"),
    "scalar is uninitialised": (
        "alloc t: int8[] local\n  x[0] = t[]",
        r"read before it is written: t\[\]",
    ),
    "array is uninitialised": (
        "alloc t: int8[2] local\n  t[0] = int8(1)\n  x[0] = t[1]",
        r"read before it is written: t\[1\]",
    ),
    "a constant is written": ("c[0] = int8(1)", "store to a constant"),
    "rank": ("x[0, 0] = int8(1)", "wrong number of indices"),
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_undefined_operations_are_errors(name: str) -> None:
    """Each undefined operation is an error that names the function and the expression."""
    body, message = UNDEFINED[name]
    text = f"constant c: int8[1] = [1]\nfunc f(x: int8[4], y: int8[2, 2]):\n  {body}\n"
    with pytest.raises(InterpreterError, match=message) as caught:
        run(text, bytes_(1, -128, 0, 0), np.zeros((2, 2), np.int8))
    assert "function 'f'" in str(caught.value)


CALLS = {
    "misaligned view": ("invoke g(view(w, int32[1], 2), 0)", "byte address 2 is misaligned"),
    "view outside": ("invoke g(view(w, int32[1], 16), 0)", r"bytes \[16, 20\) lie outside"),
    "view of another type": ("invoke g(view(w, int8[4], 0), 0)", "got int8, expected int32"),
    "view too small": ("invoke g(view(w, int32[0], 0), 0)", "got 0 elements, expected 1"),
    "argument out of range": ("invoke g(view(w, int32[1], 0), 9)", r"9 is outside .* \[0, 5\]"),
    "wrong kinds": ("invoke g(0, 0)", "got an integer, expected a buffer"),
    "buffer for an integer": (
        "invoke g(view(w, int32[1], 0), view(w, int32[1], 0))", "got a buffer",
    ),
    "too few arguments": ("invoke g(0)", "1 arguments for 2 parameters of 'g'"),
    "unknown function": ("invoke h()", "there is no function 'h'"),
    "recursion": ("invoke f()", "'f' calls itself"),
    "uninitialised workspace": ("invoke g(view(w, int32[1], 0), 1)", "read before it is written"),
    "partly initialised": (
        "invoke one(view(w, int8[1], 1))\n  invoke g(view(w, int32[1], 0), 1)",
        "read before it is written",
    ),
    "alignment of a parameter": ("invoke k(view(w, int8[4], 4))", "is not aligned to 8 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_wrong_calls_are_errors(name: str) -> None:
    """Each way to call a function wrongly is an error."""
    call, message = CALLS[name]
    text = f"""
func g(t: int32[1], n: int32 in 0..5):
  if n > 0:
    t[0] = t[0]

func k(t: int8[4] align 8):
  pass

func one(t: int8[1]):
  t[0] = int8(1)

func f():
  alloc w: uint8[16] workspace
  {call}
"""
    with pytest.raises(InterpreterError, match=message):
        run(text)


ARGUMENTS = [
    ((), "0 arguments for 2 parameters"),
    ((bytes_(1, 2), 3), "got 2 elements, expected 4"),
    ((np.zeros(4, np.int32), 3), "got int32, expected int8"),
    ((5, 3), "the argument is not an array"),
    ((bytes_(1, 2, 3, 4), bytes_(1)), "the argument is not an integer"),
    ((np.zeros(8, np.int8)[::2], 3), "is not contiguous"),
    ((np.frombuffer(b"abcd", np.int8), 3), "read-only"),
]


@pytest.mark.parametrize(("args", "message"), ARGUMENTS)
def test_wrong_arguments_are_errors(args: tuple[Array | int, ...], message: str) -> None:
    """Arguments that do not fit the parameters are refused with the parameter's name."""
    with pytest.raises(InterpreterError, match=message):
        run("func f(x: int8[4], n: int32 in 0..5):\n  x[0] = int8(1)", *args)


def test_outputs_may_be_declared_uninitialised() -> None:
    """A parameter named uninitialised must be written before it is read."""
    text = "func f(x: int8[2], y: int8[2]):\n  y[0] = x[0]\n  y[1] = y[{}]"
    run(text.format(0), bytes_(1, 2), bytes_(0, 0), uninitialised=("y",))
    with pytest.raises(InterpreterError, match=r"read before it is written: y\[1\]"):
        run(text.format(1), bytes_(1, 2), bytes_(0, 0), uninitialised=("y",))


def test_step_limit() -> None:
    """A run that takes too long is stopped before the loop that would."""
    loops = "  for i in range(0, n):\n    for j in range(0, n):\n      pass"
    functions = parse(f"func f(n: int32):\n{loops}")
    assert Interpreter(functions, max_steps=111).run("f", [10]) == 111
    with pytest.raises(StepLimitError, match="more than 110 steps"):
        Interpreter(functions, max_steps=110).run("f", [10])


def test_symbolic_extents() -> None:
    """An extent that is a parameter is known when the function is called."""
    text = "func f(x: int8[n, 2], n: int32 in 1..4):\n  x[n - 1, 1] = int8(7)\n  x[n, 0] = int8(7)"
    x = np.zeros((3, 2), np.int8)
    with pytest.raises(InterpreterError, match=r"index 3 of axis 0 is outside \[0, 3\)"):
        run(text, x, 3)
    assert x[2, 1] == 7


def test_undefined_names_are_errors() -> None:
    """A Var or Buffer outside its scope is an error of the function, not a crash."""
    x, stray = Buffer("x", (4,), DType.INT32), Var("stray")
    for body in (
        Store(x, (IntImm(0),), stray),
        Store(Buffer("other", (4,), DType.INT32), (IntImm(0),), IntImm(0)),
    ):
        func = PrimFunc("f", (x,), body)
        with pytest.raises(InterpreterError, match="is used outside its scope"):
            Interpreter([func]).run("f", [np.zeros(4, np.int32)])


def test_deep_nesting_is_an_error() -> None:
    """More loops than Python can nest is a diagnostic."""
    buffer = Buffer("x", (), DType.INT32)
    body: Stmt = Store(buffer, (), IntImm(0))
    for number in range(30):
        body = For(Var(f"i{number}"), IntImm(0), IntImm(1), body)
    with pytest.raises(InterpreterError, match="too deep"):
        Interpreter([PrimFunc("f", (buffer,), body)]).run("f", [np.zeros((), np.int32)])


def test_million_steps_take_seconds() -> None:
    """A kernel of a million steps stays practical."""
    import time

    text = """
func f(x: int8[100], y: int32[1]):
  y[0] = 0
  for i in range(0, 10000):
    for k in range(0, 100):
      y[0] = floormod(y[0] + cast(int32, x[k]) * 3, 1000)
"""
    start = time.process_time()
    steps = run(text, np.ones(100, np.int8), np.zeros(1, np.int32))
    assert steps > 10**6
    assert time.process_time() - start < 10


def test_nan_and_infinity_pass_through_memory() -> None:
    """Special values survive loads and stores."""
    x = np.array([math.nan, -math.inf], np.float32)
    run("func f(x: float32[2]):\n  x[0] = x[1] * 0.0\n  x[1] = -x[1]", x)
    assert math.isnan(x[0])
    assert x[1] == math.inf
