"""Compiled C means what the TIR interpreter says, under sanitizers, for random expressions."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir import host
from microtir.dtype import DType
from microtir.errors import InterpreterError
from microtir.module.ir_module import IRModule
from microtir.support.code_templates import render
from microtir.tir import build
from microtir.tir.interpreter import Interpreter
from microtir.tir.intrinsics import SIGNATURES
from microtir.tir.ir import (
    Binary,
    BinaryOp,
    Buffer,
    Call,
    Cast,
    Expr,
    FloatImm,
    If,
    IntImm,
    Intrinsic,
    Load,
    PrimFunc,
    Scope,
    Select,
    Stmt,
    Store,
    Unary,
    UnaryOp,
    Var,
)
from microtir.tir.visitor import substitute
from tests.support.c_compilers import STRICT, compiler_output
from tests.support.programs import artifact_of, config, loop

TYPES = (
    DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, DType.INT32, DType.UINT32, DType.INT64,
    DType.FLOAT32,
)  # fmt: skip
LENGTH = 16
INPUTS = {dtype: Buffer(f"in_{dtype.value}", (LENGTH,), dtype) for dtype in TYPES}
ROW = Var("i")
Op = BinaryOp
INTEGER_OPS = (
    Op.ADD, Op.SUB, Op.MUL, Op.FLOORDIV, Op.FLOORMOD, Op.TRUNCDIV, Op.MIN, Op.MAX,
    Op.SHIFT_LEFT, Op.SHIFT_RIGHT, Op.BIT_AND, Op.BIT_OR, Op.BIT_XOR,
)  # fmt: skip
FLOAT_OPS = (Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.MIN, Op.MAX)
COMPARISONS = (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE)


def _samples(dtype: DType) -> npt.NDArray[np.generic]:
    """Values that make most operations defined, and the extremes of the type."""
    if dtype.is_float:
        reals = [0.0, -0.0, 1.0, -1.5, 0.1, 3.25, -100.5, 1e-3, 7.0, 2.5, -2.5, 0.5, 64, -3, 9, 4]
        return np.array(reals, np.float32)
    small = [0, 1, 2, 3, 5, 7, 11, 4, 6, 31, 100, 120, 8, 1, 2, dtype.max]
    signed = [-1, -2, -3, -5, -7, -100, dtype.min]
    values = [*small[: LENGTH - 7], *signed] if dtype.is_signed else small
    return np.array(values[-LENGTH:], dtype.value)


@st.composite
def expressions(draw: st.DrawFn, dtype: DType, depth: int) -> Expr:
    """Draw a random expression of a type; whether it is defined depends on the values it meets."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(_leaves(dtype))
    part = expressions(dtype, depth - 1)
    if dtype is DType.BOOL:
        return draw(_conditions(depth))
    choices: list[st.SearchStrategy[Expr]] = [
        st.builds(
            Binary, st.sampled_from(FLOAT_OPS if dtype.is_float else INTEGER_OPS), part, part
        ),
        st.builds(Select, expressions(DType.BOOL, depth - 1), part, part),
        st.sampled_from(TYPES).flatmap(
            lambda source: st.builds(Cast, st.just(dtype), expressions(source, depth - 1))
        ),
    ]
    if dtype.is_signed:
        choices.append(st.builds(Unary, st.just(UnaryOp.NEG), part))
    if dtype is DType.INT32:
        choices.append(_fixed_point(depth))
    if dtype is DType.FLOAT32:
        exact = st.sampled_from(
            (
                *(Intrinsic.ABS, Intrinsic.FLOOR, Intrinsic.ROUND, Intrinsic.SQRT),
                *(Intrinsic.POSITIVE_PART, Intrinsic.CEIL, Intrinsic.ROUND_HALF_TO_EVEN),
            )
        )
        choices.append(st.builds(Call, exact, st.tuples(part), st.just(dtype)))
    return draw(st.one_of(choices))


def _leaves(dtype: DType) -> st.SearchStrategy[Expr]:
    if dtype is DType.BOOL:
        return st.integers(0, 1).map(lambda v: IntImm(v, dtype))
    load: st.SearchStrategy[Expr] = st.just(Load(INPUTS[dtype], (ROW,)))
    if dtype.is_float:
        values = st.sampled_from([0.0, -0.0, 0.5, -1.25, 3.0, 0.10000000149011612])
        return st.one_of(load, values.map(lambda v: FloatImm(v, dtype)))
    low, high = max(dtype.min, -40000), min(dtype.max, 70000)
    extremes = st.sampled_from([dtype.min, dtype.max])
    literals = st.one_of(st.integers(max(low, -9), min(high, 9)), st.integers(low, high), extremes)
    return st.one_of(load, load, literals.map(lambda v: IntImm(v, dtype)))


@st.composite
def _conditions(draw: st.DrawFn, depth: int) -> Expr:
    source = draw(st.sampled_from((*TYPES, DType.BOOL)))
    inner = expressions(source, depth - 1)
    if source is DType.BOOL:
        if draw(st.booleans()):
            return Unary(UnaryOp.NOT, draw(inner))
        return Binary(draw(st.sampled_from((Op.AND, Op.OR, Op.EQ))), draw(inner), draw(inner))
    return Binary(draw(st.sampled_from(COMPARISONS)), draw(inner), draw(inner))


def _fixed_point(depth: int) -> st.SearchStrategy[Expr]:
    part = expressions(DType.INT32, depth - 1)
    count = st.integers(0, 31).map(IntImm)
    multiplier = st.integers(1 << 30, (1 << 31) - 1).map(IntImm)

    def call(intrinsic: Intrinsic, *args: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        return st.builds(Call, st.just(intrinsic), st.tuples(*args), st.just(DType.INT32))

    return st.one_of(
        call(Intrinsic.SATURATING_ROUNDING_DOUBLING_HIGH_MUL, part, part),
        call(Intrinsic.ROUNDING_DIVIDE_BY_POT, part, count),
        call(Intrinsic.SATURATING_SHIFT_LEFT, part, count),
        call(
            Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER,
            part,
            multiplier,
            st.integers(-31, 30).map(IntImm),
        ),
        call(
            Intrinsic.MULTIPLY_BY_REDUCED_MULTIPLIER,
            expressions(DType.INT64, depth - 1),
            st.integers(0, (1 << 15) - 1).map(IntImm),
            st.integers(-31, 7).map(IntImm),
        ),
        call(Intrinsic.COUNT_LEADING_ZEROS, expressions(DType.UINT32, depth - 1)),
    )


def _probe(e: Expr) -> PrimFunc:
    """Store the value of an expression for one row."""
    out = Buffer("out", (LENGTH,), e.dtype)
    row = Var("row", low=0, high=LENGTH - 1)
    body = Store(out, (row,), substitute(e, {ROW: row}))
    return PrimFunc("probe", (*INPUTS.values(), out, row), body)


def _defined_rows(e: Expr) -> npt.NDArray[np.uint8]:
    """1 for each row of the inputs on which the interpreter finds a value."""
    interpreter = Interpreter([_probe(e)])
    inputs = [_samples(dtype) for dtype in INPUTS]

    def is_defined(row: int) -> bool:
        try:
            interpreter.run("probe", [*inputs, np.zeros(LENGTH, e.dtype.value), row])
        except InterpreterError:
            return False
        return True

    return np.array([is_defined(row) for row in range(LENGTH)], np.uint8)


def _program(found: Sequence[Expr]) -> PrimFunc:
    """Store the value of each expression for the rows where it has one."""
    outputs = [Buffer(f"out{n}", (LENGTH,), e.dtype) for n, e in enumerate(found)]
    masks = [
        Buffer(f"defined{n}", (LENGTH,), DType.UINT8, Scope.CONSTANT, _defined_rows(e))
        for n, e in enumerate(found)
    ]

    def stores(row: Var) -> Stmt:
        return build.seq(
            *(
                If(
                    Binary(Op.EQ, Load(mask, (row,)), IntImm(1, DType.UINT8)),
                    Store(out, (row,), substitute(e, {ROW: row})),
                )
                for e, out, mask in zip(found, outputs, masks, strict=True)
            )
        )

    params = (*INPUTS.values(), *outputs)
    return PrimFunc("values", params, loop("row", LENGTH, stores), exported=True)


def _results(found: Sequence[Expr]) -> list[npt.NDArray[np.generic]]:
    return [np.zeros(LENGTH, e.dtype.value) for e in found]


def _check(found: Sequence[Expr]) -> None:
    """Interpreter and compiled C must agree, bit by bit, and no sanitizer may object."""
    function = _program(found)
    inputs = [_samples(dtype) for dtype in INPUTS]
    expected, actual = _results(found), _results(found)
    Interpreter([function]).run("values", [*inputs, *expected])
    module = IRModule(functions=(function,), config=config("random"), is_lowered=True)
    model = host.load(artifact_of(module), sanitize=True)
    model["values"](*inputs, *actual)
    for e, a, b in zip(found, expected, actual, strict=True):
        same = (a == b) | ((a != a) & (b != b))
        assert same.all(), f"{e}: {a} interpreted, {b} compiled"


any_expression = st.sampled_from((*TYPES, DType.BOOL)).flatmap(lambda t: expressions(t, 3))


@settings(max_examples=8)
@given(st.lists(any_expression, min_size=15, max_size=15))
def test_random_expressions(found: list[Expr]) -> None:
    """Whatever is defined in TIR has the same value in C, and is defined there, too."""
    _check(found)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: str(dtype.value))
def test_every_operator(dtype: DType) -> None:
    """Each binary operator on a value and a literal, both ways, and on two values."""
    one = Load(INPUTS[dtype], (ROW,))
    two = FloatImm(1.5) if dtype.is_float else IntImm(3, dtype)
    other = Load(INPUTS[dtype], (build.sub(IntImm(LENGTH - 1), ROW),))
    found: list[Expr] = []
    for op in FLOAT_OPS if dtype.is_float else INTEGER_OPS:
        found += [Binary(op, one, two), Binary(op, two, one), Binary(op, one, other)]
    found += [Binary(op, one, other) for op in COMPARISONS]
    _check(found)


@pytest.mark.parametrize("dtype", [DType.INT32, DType.INT64], ids=lambda dtype: str(dtype.value))
def test_division_by_minus_one(dtype: DType) -> None:
    """Where the quotient overflows, C's remainder is undefined, and so is TIR's."""
    one, other = Load(INPUTS[dtype], (ROW,)), Load(INPUTS[dtype], (build.sub(IntImm(15), ROW),))
    found = [
        Binary(op, one, divisor)
        for op in (Op.FLOORDIV, Op.FLOORMOD, Op.TRUNCDIV)
        for divisor in (IntImm(-1, dtype), other)
    ]
    last = LENGTH - 1
    assert not any(_defined_rows(e)[last] for e in found if isinstance(e.b, IntImm))
    _check(found)


def test_every_conversion() -> None:
    """A Cast from each type to each other one, where the value fits."""
    found: list[Expr] = [
        Cast(target, Load(INPUTS[source], (ROW,))) for source in TYPES for target in TYPES
    ]
    _check(found)


@pytest.mark.parametrize(
    "intrinsic",
    [i for i in Intrinsic if SIGNATURES[i].result is not DType.FLOAT32],
    ids=lambda i: str(i.value),
)
def test_fixed_point_extremes(intrinsic: Intrinsic) -> None:
    """The fixed-point functions agree with their definitions on the edges of their domains."""
    edges = [DType.INT32.min, DType.INT32.min + 1, -1, 0, 1, 1 << 30, DType.INT32.max]
    counts, shifts = [0, 1, 15, 30, 31], [-31, -30, -1, 0, 1, 30]
    second = {
        Intrinsic.SATURATING_ROUNDING_DOUBLING_HIGH_MUL: edges,
        Intrinsic.ROUNDING_DIVIDE_BY_POT: counts,
        Intrinsic.SATURATING_SHIFT_LEFT: counts,
        Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER: [1 << 30, DType.INT32.max],
        Intrinsic.MULTIPLY_BY_REDUCED_MULTIPLIER: [0, 1, 1 << 14, (1 << 15) - 1],
        Intrinsic.COUNT_LEADING_ZEROS: [],
        Intrinsic.COMPILER_BARRIER: [],
    }.get(intrinsic, [])
    if intrinsic is Intrinsic.COMPILER_BARRIER:
        argument_lists: list[tuple[Expr, ...]] = [(IntImm(x),) for x in edges]
    elif intrinsic is Intrinsic.BITS_OF_FLOAT:
        reals = [0.0, -0.0, 1.0, -1.5, 2.0**-149, 3.4028234663852886e38, math.inf, -math.inf]
        argument_lists = [(FloatImm(x, DType.FLOAT32),) for x in reals]
    elif SIGNATURES[intrinsic].result is DType.INT64:
        long = [DType.INT64.min, DType.INT64.max, 3037000500, *edges]
        argument_lists = [tuple(IntImm(v, DType.INT64) for v in (x, y)) for x in long for y in long]
    elif intrinsic is Intrinsic.COUNT_LEADING_ZEROS:
        values = [0, 1, 2, 3, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFF]
        argument_lists = [(IntImm(v, DType.UINT32),) for v in values]
    elif intrinsic is Intrinsic.MULTIPLY_BY_REDUCED_MULTIPLIER:
        sums = [*edges, -(1 << 47), (1 << 47) - 1, 3 << 20]
        argument_lists = [
            (IntImm(x, DType.INT64), IntImm(m), IntImm(s))
            for x in sums
            for m in second
            for s in (-31, -17, -1, 0, 7)
        ]
    elif intrinsic is Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER:
        argument_lists = [
            (IntImm(x), IntImm(m), IntImm(s)) for x in edges for m in second for s in shifts
        ]
    else:
        argument_lists = [(IntImm(x), IntImm(y)) for x in edges for y in second]
    result = SIGNATURES[intrinsic].result
    found: list[Expr] = [Call(intrinsic, args, result) for args in argument_lists]
    _check(found)


@pytest.mark.parametrize(
    ("intrinsic", "ulps"),
    [(Intrinsic.EXP, 2), (Intrinsic.LOG, 2), (Intrinsic.TANH, 3)],
    ids=lambda value: str(getattr(value, "value", value)),
)
def test_library_functions_are_close(intrinsic: Intrinsic, ulps: int) -> None:
    """The C library's functions may miss correct rounding by some units in the last place."""
    e = Call(intrinsic, (Load(INPUTS[DType.FLOAT32], (ROW,)),), DType.FLOAT32)
    function = _program([e])
    inputs = [_samples(dtype) for dtype in INPUTS]
    expected, actual = _results([e]), _results([e])
    Interpreter([function]).run("values", [*inputs, *expected])
    module = IRModule(functions=(function,), config=config("library"), is_lowered=True)
    host.load(artifact_of(module))["values"](*inputs, *actual)
    np.testing.assert_array_max_ulp(
        expected[0].astype(np.float32), actual[0].astype(np.float32), maxulp=ulps
    )


@pytest.mark.parametrize("flag", ["-D__x86_64__", "-U__x86_64__"])
def test_leading_zeros_are_counted(flag: str, tmp_path: Path) -> None:
    """By the compiler's function and without it, for every place of the highest bit."""
    helper = render("c/helpers/count_leading_zeros.c.j2")
    (tmp_path / "main.c").write_text(
        "typedef int int32_t;\ntypedef unsigned int uint32_t;\n" + helper + "\nint main(void)\n{\n"
        "    int wrong = count_leading_zeros(0) != 32;\n"
        "    for (int bit = 0; bit < 32; bit++) {\n"
        "        const uint32_t low = 1u << bit;\n"
        "        wrong += count_leading_zeros(low) != 31 - bit;\n"
        "        wrong += count_leading_zeros(low | (low - 1u)) != 31 - bit;\n    }\n"
        "    return wrong;\n}\n"
    )
    command = ["gcc", "-std=c99", *STRICT, flag, "main.c", "-o", "program"]
    assert "error" not in compiler_output(command, tmp_path)
    subprocess.run([str(tmp_path / "program")], check=True, timeout=60)
