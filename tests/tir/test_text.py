"""The text form: what it looks like, that it reads back, and what the parser refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.errors import TirError
from microtir.tir.ir import (
    Allocate,
    Binary,
    BinaryOp,
    Buffer,
    BufferArgument,
    FloatImm,
    For,
    IntImm,
    KernelCall,
    KernelContract,
    Let,
    Load,
    Origin,
    PrimFunc,
    Region,
    Scope,
    Seq,
    Store,
    Unary,
    UnaryOp,
    Var,
)
from microtir.tir.text import access_text, expr_text, parse, parse_function, stmt_text, to_text
from microtir.tir.verify import verify

EVERYTHING = """\
constant w: int8[3] align 4 = [1, -2, 3]
constant empty: float32[20]
constant real: float32[2] = [0.1, -1.5]
constant flags: bool[2] = [true, false]

meaning dot(a: int8[4], sum: int32[1], n: int32 in 1..4):
  kernel noinline merges
    comment "Multiplies and \\"adds\\""
    comment "bytes"
    assembly "mve.fp" "{\\"straight\\": \\"3\\", \\"apart\\": true, \\"n\\": [\\"1\\"]}"
  sum[0] = 0
  for i in range(0, n):
    sum[0] = sum[0] + cast(int32, a[i]) * cast(int32, w[i - 1])

export func layer(x: int8[n, 4], y: int32[8] align 4, n: int32 in 1..64, `for`: int32):
  origin "CONV_2D" "model/conv \\"1\\"" 3 1234 1000 partial
  layer "layer03" "conv_2d"
  fact "input    1x4 int8"
  row_range n `for`
  rows x 2 -1 3 10
  scratch y
  row_port output
  plane_rows 1 12 int8
  for i in range(0, n) vectorized:
    for j: int64 in range(int64(0), int64(9)):
      pass
    block:
      let v: int32 in 0..* = -(5) - -5 + -i
      y[v] = 1
    alloc acc: int32[] local
    acc[] = select(i < 3 and not (i == 2 or i >= 4), i << 2 >> 1, i & 7 | 8 ^ 1)
    if real[0] < 0.1 and flags[0]:
      y[0] = floordiv(i, 2) + floormod(i, 3) + truncdiv(i, 4) + min(i, max(1, 2))
    else:
      call dot(x at [i, 0], y at [2], 3):
        assembly "dot_smlad"
        reads a[0 +: 4]
        writes sum[0 +: 1]
        alignment 4
        scratch 16
        stack 24
        requires n < 5
        requires n > 0
  call dot(x at [0, 0], y at [0], n)

func main(x: int8[4]):
  alloc ws: uint8[64] align 8 workspace
  invoke layer(view(x, int8[1, 4], 0), view(ws, int32[8], 32), 1, -1)
  y_1[] = empty[0] / 2.0 - float64(0.25)
"""


def test_everything_round_trips() -> None:
    """Every construct of the language survives reading and writing."""
    text = EVERYTHING.replace("  y_1[] = empty[0] / 2.0 - float64(0.25)\n", "")
    text = text.replace("constant empty: float32[20]\n", "")
    assert to_text(parse(text)) == text


def test_large_constants_are_bytes() -> None:
    """Constants of more than 16 elements are printed as little-endian bytes, or elided."""
    data = np.arange(20, dtype=np.int16)
    table = Buffer("t", (20,), DType.INT16, Scope.CONSTANT, data)
    out = Buffer("y", (1,), DType.INT16)
    func = PrimFunc("f", (out,), Store(out, (IntImm(0),), Load(table, (IntImm(0),))))
    text = to_text(func)
    assert 'constant t: int16[20] = "00000100020003' in text
    again = parse_function(text)
    (store,) = (again.body,)
    assert isinstance(store, Store)
    assert isinstance(store.value, Load)
    np.testing.assert_array_equal(store.value.buffer.data, data)
    assert "constant t: int16[20] = ...\n" in to_text(func, constants=False)


def test_equal_names_are_numbered() -> None:
    """Two objects of one name are told apart; the copy reads back with the numbered name."""
    x = Buffer("i", (4,), DType.INT32)
    outer, inner = Var("i"), Var("i")
    store = Store(x, (outer,), inner)
    func = PrimFunc(
        "f", (x,), For(outer, IntImm(0), IntImm(4), For(inner, IntImm(0), IntImm(2), store))
    )
    text = to_text(func)
    assert "for i_1 in range(0, 4):\n    for i_2 in range(0, 2):\n      i[i_1] = i_2" in text
    assert to_text(parse_function(text)) == text


def test_scopes_that_end_early_are_blocks() -> None:
    """A Let or Allocate that is followed by something is wrapped."""
    x = Buffer("x", (4,), DType.INT32)
    v = Var("v")
    let = Let(v, IntImm(1), Store(x, (v,), v))
    scalar = Buffer("s", (), DType.INT32, Scope.LOCAL)
    alloc = Allocate(scalar, Store(scalar, (), IntImm(1)))
    text = stmt_text(Seq((let, alloc)))
    assert text == ("block:\n  let v: int32 = 1\n  x[v] = v\nalloc s: int32[] local\ns[] = 1")


def test_empty_sequences_in_others_leave_no_trace() -> None:
    """What a rewrite leaves of a removed statement is no scope's end, and no line."""
    local, x = Buffer("local", (1,), DType.INT32, Scope.LOCAL), Buffer("x", (1,), DType.INT32)
    stores = Seq((Store(local, (IntImm(0),), IntImm(1)), Store(x, (IntImm(0),), IntImm(2))))
    nested = Seq((Seq(()), Seq((Allocate(local, stores), Seq(())))))
    text = to_text(PrimFunc("f", (x,), nested))
    assert text == to_text(PrimFunc("f", (x,), Allocate(local, stores)))
    assert to_text(parse(text)) == text


def test_words_of_headers_are_names_elsewhere() -> None:
    """A buffer may be called as a line of a function's header starts."""
    text = (
        "func func(rows: int8[2], fact: int8[2], local: int32 in 0..1, meaning: int8[2]):\n"
        "  rows[0] = fact[local]\n  fact[1] = meaning[0]\n"
    )
    assert to_text(parse(text)) == text


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (Binary(BinaryOp.SUB, Var("a"), Binary(BinaryOp.SUB, Var("b"), Var("c"))), "a - (b - c)"),
        (Binary(BinaryOp.MUL, Binary(BinaryOp.ADD, Var("a"), Var("b")), Var("c")), "(a + b) * c"),
        (Unary(UnaryOp.NEG, Unary(UnaryOp.NEG, Var("a"))), "-(-a)"),
        (Unary(UnaryOp.NEG, IntImm(5)), "-(5)"),
        (IntImm(-5), "-5"),
        (FloatImm(-0.0), "-0.0"),
        (FloatImm(math.inf), "inf"),
        (FloatImm(0.1, DType.FLOAT64), "float64(0.1)"),
        (IntImm(1, DType.BOOL), "true"),
        (Var("two words"), "`two words`"),
    ],
)
def test_expressions(e: Binary | Unary | IntImm | FloatImm | Var, text: str) -> None:
    """Expressions are printed with the parentheses that they need and no others."""
    assert expr_text(e) == text


def test_comparisons_do_not_chain() -> None:
    """The comparison of a comparison keeps its parentheses."""
    a = Binary(BinaryOp.EQ, Var("a"), Var("b"))
    assert expr_text(Binary(BinaryOp.EQ, a, Binary(BinaryOp.LT, Var("c"), Var("d")))) == (
        "(a == b) == (c < d)"
    )
    assert access_text(Buffer("x", (4,), DType.INT8), (Var("i"),)) == "x[i]"


def test_contracts_name_the_parameters_of_the_kernel() -> None:
    """A kernel's parameter that shares its name with a constant keeps its own name in contracts."""
    table = Buffer("a", (4,), DType.INT8, Scope.CONSTANT, np.zeros(4, np.int8))
    a, x = Buffer("a", (4,), DType.INT8), Buffer("x", (4,), DType.INT8)
    kernel = PrimFunc("k", (a,), Store(a, (IntImm(0),), Load(table, (IntImm(0),))))
    contract = KernelContract((Region(a, (IntImm(0),), (4,)),), ())
    call = KernelCall(kernel, (BufferArgument(x, (IntImm(0),)),), contract)
    func = PrimFunc("f", (x,), call, Origin("CONV_2D", "n", 0))
    text = to_text(func)
    assert "meaning k(a_1: int8[4])" in text
    assert "reads a_1[0 +: 4]" in text
    again = parse_function(text)
    verify(again)
    assert to_text(again) == text


MALFORMED = {
    "x[0] = ": "expected a name, found end of line",
    "x[0] = 1 2": "unexpected '2'",
    "z[0] = 1": "'z' is not defined",
    "x[0] = n[0]": r"unexpected '\['",
    "n[0] = 1": "'n' is not a buffer",
    "x[0] = x": r"expected '\['",
    "x[0] = foo(1)": "'foo' is not defined",
    "x[0] = min(1)": "'min' takes 2 expressions, not 1",
    "x[0] = exp(1.0, 2.0)": "'exp' takes 1 expressions",
    "x[0] = cast(real, 1)": "expected a type, found 'real'",
    "x[0] = int8(y)": "'y' is not a number",
    "x[0] = $": r"unexpected character '\$'",
    "for i in range(0):\n    pass": "range takes start and stop",
    "for i in span(0, 1):\n    pass": "expected 'range'",
    "for i in range(0, 1):\n  x[0] = 1": "indented block is missing",
    "for i in range(0, 1):\n   pass": "odd number of spaces",
    "x[0] = 1\n      x[0] = 2": "unexpected indentation",
    "alloc t: int8[2] elsewhere": "unexpected 'elsewhere'",
    "call f(1)": "'f' is not defined",
    "call n(1)": "'n' is not a kernel",
    "let v: int32": "expected '='",
    "let v = 3": "expected ':'",
    "if n > 0": "expected ':'",
    "for in range(0, 1):\n    pass": "expected a name, found 'in'",
}


@pytest.mark.parametrize("body", MALFORMED)
def test_malformed_text_is_refused(body: str) -> None:
    """Each mistake is an error that names the line."""
    text = f"func f(x: int32[4], n: int32):\n  {body}\n"
    with pytest.raises(TirError, match=MALFORMED[body]) as caught:
        parse(text)
    assert "line " in str(caught.value)


def test_one_function_is_wanted() -> None:
    """parse_function refuses a text of several functions."""
    with pytest.raises(TirError, match="contains 2 functions"):
        parse_function("func f():\n  pass\nfunc g():\n  pass")
    with pytest.raises(TirError, match="expected 'func'"):
        parse("let x: int32 = 1")
    with pytest.raises(TirError, match=r"expected '\]'"):
        parse("func f(x: int8[3):\n  pass")
