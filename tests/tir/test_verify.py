"""Every rule of the verifier accepts what is right and refuses what breaks it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from microtir.dtype import DType
from microtir.errors import TirError
from microtir.tir.function import RowAccess, RowRange
from microtir.tir.ir import (
    Allocate,
    Binary,
    BinaryOp,
    Buffer,
    BufferArgument,
    BufferView,
    Call,
    Cast,
    Expr,
    ExternCall,
    ExternFunction,
    FloatImm,
    For,
    IntImm,
    Intrinsic,
    Invoke,
    KernelCall,
    KernelContract,
    Let,
    Load,
    PrimFunc,
    Region,
    Scope,
    Seq,
    Stmt,
    Store,
    Var,
)
from microtir.tir.text import parse
from microtir.tir.verify import verify, verify_module
from microtir.tir.verify_rules import RULES
from tests.tir.random_programs import functions

X = Buffer("x", (4,), DType.INT32)
N = Var("n", DType.INT32, 0, 4)
M = Var("m", DType.INT32, 0, 4)
ZERO = (IntImm(0),)
CONSTANT = Buffer("c", (4,), DType.INT32, Scope.CONSTANT, np.zeros(4, np.int32))
LOCAL = Buffer("t", (), DType.INT32, Scope.LOCAL)


def function(body: Stmt, *params: Buffer | Var) -> PrimFunc:
    """A function of X, N and more."""
    return PrimFunc("f", (X, N, *params), body)


def storing(value: Expr) -> PrimFunc:
    """A function that stores one value."""
    return function(Store(X, ZERO, value))


def text(body: str) -> tuple[PrimFunc, ...]:
    """A function f with a small module around it."""
    return parse(f"""
constant c: int32[4] = [0, 0, 0, 0]

meaning k(a: int32[2], m: int32 in 0..4):
  a[0] = m

func g(a: int32[2] align 4, m: int32 in 0..4):
  a[0] = m

func h():
  invoke h2()

func h2():
  invoke h()

func f(x: int32[4], y: int8[4], n: int32 in 0..4, r: float32[4]):
  {body}
""")


def kernel_call(contract: KernelContract, target: Buffer = X) -> PrimFunc:
    """A call of a kernel with one pointer."""
    a = KERNEL.params[0]
    assert isinstance(a, Buffer)
    return function(KernelCall(KERNEL, (BufferArgument(target, ZERO),), contract))


def extern_call(extern: ExternFunction, *args: BufferArgument | Expr) -> PrimFunc:
    """A call of a C function outside the program."""
    return function(ExternCall(extern, args), Buffer("y", (4,), DType.INT8))


KERNEL_BUFFER = Buffer("a", (2,), DType.INT32)
EXTERN = ExternFunction("e", (KERNEL_BUFFER,), (), (KERNEL_BUFFER,))
KERNEL = PrimFunc("k", (KERNEL_BUFFER,), Store(KERNEL_BUFFER, ZERO, IntImm(1)))
LOOP = For(Var("i"), IntImm(0), IntImm(2), Store(X, ZERO, IntImm(1)))

BROKEN: dict[str, list[PrimFunc | str]] = {
    "parameters": [
        PrimFunc("f", (X, X), Seq(())),
        PrimFunc("f", (CONSTANT,), Seq(())),
        PrimFunc("f", (replace(X, alignment=3),), Seq(())),
        PrimFunc("f", (replace(X, shape=(-1,)),), Seq(())),
        PrimFunc("f", (replace(X, shape=(N,)),), Seq(())),
        PrimFunc("f", (Var("m", DType.INT32, 5, 4),), Seq(())),
    ],
    "roles": [
        PrimFunc("f", (N, X), Seq(()), row_range=RowRange(N, N)),
        PrimFunc("f", (N, M, X), Seq(()), row_range=RowRange(M, N)),
        PrimFunc("f", (X,), Seq(()), scratch=LOCAL),
        PrimFunc("f", (X,), Seq(()), rows={LOCAL: RowAccess(1, 0, 1, 4)}),
    ],
    "single-definition": [
        function(Seq((LOOP, LOOP))),
        function(Let(N, IntImm(1), Seq(()))),
        function(Allocate(LOCAL, Allocate(LOCAL, Seq(())))),
    ],
    "variable-scope": [storing(Var("stray")), function(Seq((LOOP, Store(X, ZERO, LOOP.var))))],
    "buffer-scope": [
        storing(Load(Buffer("stray", (4,), DType.INT32), ZERO)),
        function(Seq((Allocate(LOCAL, Seq(())), Store(LOCAL, (), IntImm(1))))),
    ],
    "constant-data": [
        storing(Load(replace(CONSTANT, data=None), ZERO)),
        storing(Load(replace(CONSTANT, shape=(2, 2)), (*ZERO, *ZERO))),
        storing(Load(replace(CONSTANT, data=np.zeros(4, np.int8)), ZERO)),
    ],
    "allocation": [
        function(Allocate(replace(X), Seq(()))),
        function(Allocate(replace(LOCAL, shape=(0,)), Seq(()))),
        function(Allocate(replace(LOCAL, shape=(N,)), Seq(()))),
        function(Allocate(replace(LOCAL, alignment=0), Seq(()))),
    ],
    "literal-fits": [
        storing(IntImm(1 << 40)),
        "y[0] = int8(200)",
        "r[0] = float32(0.1)",
        storing(Cast(DType.INT32, IntImm(1, DType.FLOAT32))),
        storing(FloatImm(1.0, DType.INT32)),
    ],
    "operand-types": ["x[0] = x[1] + y[0]", "if x[0] < y[0]:\n    pass"],
    "operator-types": [
        "x[0] = x[1] / x[2]",
        "r[0] = floordiv(r[1], r[2])",
        "r[0] = r[0] << r[1]",
        "if x[0] and x[1]:\n    pass",
        "if true < false:\n    pass",
        "x[1] = not x[0]",
        "if (n == 1) + (n == 2):\n    pass",
        "let b: uint8 = -uint8(1)\n  pass",
    ],
    "cast-types": ["if cast(bool, r[0]):\n    pass", "r[0] = cast(float32, true)"],
    "condition-is-bool": ["if x[0]:\n    pass", "x[0] = select(n, 1, 2)"],
    "branch-types": ["x[0] = select(n > 0, 1, int8(2))"],
    "call-signature": [
        "r[0] = exp(x[0])",
        storing(Call(Intrinsic.COUNT_LEADING_ZEROS, (N,), DType.INT32)),
        storing(Call(Intrinsic.ROUNDING_DIVIDE_BY_POT, (N,), DType.INT32)),
    ],
    "index-type": ["x[0] = x[y[0]]", "x[int64(0)] = 1"],
    "index-rank": ["x[0] = x[0, 1]", "x[] = 1"],
    "store-type": ["x[0] = y[0]"],
    "store-target": ["c[0] = 1"],
    "loop-types": [
        "for i: int64 in range(0, 3):\n    pass",
        "for i in range(int8(0), int8(3)):\n    pass",
        "for i: float32 in range(0.0, 1.0):\n    pass",
    ],
    "unrolled-bounds": ["for i in range(0, n) unrolled:\n    pass"],
    "let-type": ["let v: int64 = n\n  pass"],
    "view-bounds": [
        function(Invoke("g", (BufferView(X, (2,), DType.INT32, 2),))),
        "invoke g(view(x, int32[2], 12), 0)",
        "invoke g(view(x, int32[2], -4), 0)",
    ],
    "invoke-arguments": [
        "invoke nobody()",
        "invoke g(view(x, int32[2], 0))",
        "invoke g(0, 0)",
        "invoke g(view(y, int8[2], 0), 0)",
        "invoke g(view(x, int32[2], 0), int8(0))",
        "invoke g(view(x, int32[1], 0), 0)",
        "invoke g(view(y, int32[1], 0), 0)",
    ],
    "kernel-arguments": [
        "call k(x at [0])",
        "call k(0, 0)",
        "call k(y at [0], 0)",
        "call k(x at [0], int8(0))",
    ],
    "kernel-contract": [
        kernel_call(KernelContract((Region(X, ZERO, (1,)),), ())),
        kernel_call(KernelContract((Region(KERNEL_BUFFER, (), ()),), ())),
        kernel_call(KernelContract((), (Region(KERNEL_BUFFER, ZERO, (1,)),)), CONSTANT),
        kernel_call(KernelContract((), (), alignment=6)),
        kernel_call(KernelContract((), (), preconditions=(N,))),
    ],
    "extern-arguments": [
        extern_call(EXTERN),
        extern_call(EXTERN, IntImm(0)),
        extern_call(EXTERN, BufferArgument(Buffer("y", (4,), DType.INT8), ZERO)),
    ],
    "extern-function": [
        extern_call(replace(EXTERN, name="two words"), BufferArgument(X, ZERO)),
        extern_call(replace(EXTERN, reads=(X,)), BufferArgument(X, ZERO)),
        extern_call(EXTERN, BufferArgument(CONSTANT, ZERO)),
    ],
    "initialised": [
        "alloc t: int32[] local\n  x[0] = t[]",
        "alloc t: int32[2] local\n  x[0] = t[0]",
        "alloc t: int32[] local\n  if n > 0:\n    t[] = 1\n  x[0] = t[]",
        "alloc t: int32[] local\n  for i in range(0, n):\n    t[] = 1\n  x[0] = t[]",
        "alloc t: int32[] local\n  for i in range(3, 3):\n    t[] = 1\n  x[0] = t[]",
        "alloc t: int32[] local\n  let v: int32 = t[]\n  t[] = v",
    ],
    "recursion": ["invoke f(view(x, int32[4], 0), view(y, int8[4], 0), 0, view(r, float32[4], 0))"],
}


def cases() -> list[tuple[str, int]]:
    """Names of rules with the numbers of their cases."""
    return [(rule, number) for rule, items in BROKEN.items() for number in range(len(items))]


@pytest.mark.parametrize(("rule", "number"), cases())
def test_broken_rules_are_named(rule: str, number: int) -> None:
    """A function that breaks a rule is refused by that rule, with function and statement."""
    broken = BROKEN[rule][number]
    module = text(broken) if isinstance(broken, str) else (broken,)
    table = {f.name: f for f in module} if isinstance(broken, str) else None
    with pytest.raises(TirError, match=rf"\(rule {rule}\)") as caught:
        verify(module[-1], table)
    assert str(caught.value).startswith("function '")


def test_every_rule_has_a_negative_test() -> None:
    """The table of broken programs covers the table of rules."""
    assert [r.name for r in RULES] == list(dict.fromkeys(r.name for r in RULES))
    assert set(BROKEN) == {r.name for r in RULES}
    assert all(r.description.endswith(".") for r in RULES)


ACCEPTED = [
    "alloc t: int32[] local\n  if n > 0:\n    t[] = 1\n  else:\n    t[] = 2\n  x[0] = t[]",
    "alloc t: int32[] local\n  for i in range(0, 2):\n    t[] = 1\n  x[0] = t[]",
    "alloc t: int32[2] local\n  for i in range(0, n):\n    t[i] = 1\n  x[0] = t[0]",
    "alloc t: int32[2] local\n  call k(t at [0], n)\n  x[0] = t[0]",
    "invoke g(view(x, int32[2], 8), n)",
    "let b: bool = n > 0\n  if b == true:\n    pass",
    "x[0] = cast(int32, r[0] > 0.5 or nan < inf)",
]


@pytest.mark.parametrize("body", ACCEPTED)
def test_correct_functions_are_accepted(body: str) -> None:
    """What looks unusual but is right passes."""
    functions = text(body)
    verify(functions[-1], {f.name: f for f in functions})


@given(functions())
@settings(max_examples=60)
def test_random_functions_are_accepted(func: PrimFunc) -> None:
    """The generator of the property tests makes correct functions."""
    verify(func)


def test_kernels_are_verified_too() -> None:
    """A rule broken inside a micro-kernel is found through its call."""
    wrong = PrimFunc("k", (KERNEL_BUFFER,), Store(KERNEL_BUFFER, ZERO, Var("stray")))
    call = KernelCall(wrong, (BufferArgument(X, ZERO),), KernelContract((), ()))
    with pytest.raises(TirError, match=r"^function 'k'"):
        verify(function(call))


def test_modules_are_verified_as_a_whole() -> None:
    """Names are unique, calls find their functions, and cycles through others are found."""
    g, h, h2, f = text("invoke g(view(x, int32[2], 8), n)")
    verify_module([g, f])
    with pytest.raises(TirError, match="there is no function 'g'"):
        verify_module([f])
    with pytest.raises(TirError, match="two functions are called 'g'"):
        verify_module([g, g, replace(g)])
    with pytest.raises(TirError, match="'h' reaches itself"):
        verify_module([h, h2])


def test_alignment_is_part_of_the_contract() -> None:
    """A callee's alignment must be guaranteed by the buffer that is passed."""
    callee, caller = parse("""
func g(a: int8[4] align 4):
  a[0] = int8(1)

func f(x: int8[8] align 4):
  invoke g(view(x, int8[4], 4))
""")
    verify_module([callee, caller])
    loose = parse("func f(x: int8[8]):\n  invoke g(view(x, int8[4], 4))")[0]
    with pytest.raises(TirError, match="needs an alignment of 4 bytes"):
        verify_module([callee, loose])


def test_comparison_of_mixed_types_names_the_statement() -> None:
    """The error shows the statement that holds the expression."""
    body = Store(X, ZERO, Binary(BinaryOp.ADD, N, IntImm(1, DType.INT8)))
    with pytest.raises(TirError, match=r"function 'f', `x\[0\] = n \+ int8\(1\)`"):
        verify(function(body))
