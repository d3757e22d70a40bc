"""Accesses of real kernels are proven; wrong ones stop the build with a full diagnostic."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.errors import InterpreterError, TirError
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.interpreter import Interpreter
from microtir.tir.ir import Expr
from microtir.tir.passes import Simplify
from microtir.tir.text import parse, parse_function
from microtir.tir.verify import verify
from tests.tir.random_programs import Generator, arguments


def convolution(
    *,
    size: tuple[int, int] = (13, 9),
    kernel: tuple[int, int] = (5, 4),
    stride: tuple[int, int] = (2, 1),
    dilation: tuple[int, int] = (2, 1),
    pad: tuple[int, int] = (2, 1),
    output: tuple[int, int] = (6, 9),
    batch: int = 1,
    ring: int | None = None,
    slack: int = 0,
) -> str:
    """A convolution with clipped windows; `slack` rows too many are read if it is positive."""
    (ih, iw), (kh, kw), (sh, sw), (dh, dw) = size, kernel, stride, dilation
    (pt, pl), (oh, ow) = pad, output
    rows = ring or batch * ih
    row = f"floordiv(r, {oh}) * {ih} + iy" if batch > 1 else "iy"
    row = f"floormod({row}, {ring})" if ring else row
    oy = f"floormod(r, {oh})" if batch > 1 else "r"
    return f"""
constant w: int8[{kh}, {kw}, 3, 8] = "{"01" * (kh * kw * 24)}"
func conv(x: int8[{rows}, {iw}, 3], y: int8[{batch * oh}, {ow}, 8], y0: int32 in 0..{batch * oh},
          y1: int32 in 0..{batch * oh}):
  for r in range(y0, y1):
    let oy: int32 = {oy}
    for ox in range(0, {ow}):
      for oc in range(0, 8):
        alloc acc: int32[] local
        acc[] = 0
        for ky in range(max(0, floordiv({pt} - oy * {sh} + {dh - 1}, {dh})),
                        min({kh}, floordiv({ih + slack + pt} - oy * {sh} + {dh - 1}, {dh}))):
          let iy: int32 = oy * {sh} - {pt} + ky * {dh}
          for kx in range(max(0, floordiv({pl} - ox * {sw} + {dw - 1}, {dw})),
                          min({kw}, floordiv({iw + pl} - ox * {sw} + {dw - 1}, {dw}))):
            for ic in range(0, 3):
              let pixel: int32 = cast(int32, x[{row}, ox * {sw} - {pl} + kx * {dw}, ic])
              acc[] = acc[] + pixel * cast(int32, w[ky, kx, ic, oc])
        y[r, ox, oc] = cast(int8, max(min(acc[], 127), -128))
"""


PROVEN = {
    "clipped window": convolution(),
    "several images": convolution(batch=3),
    "images of one row": convolution(
        size=(1, 2), kernel=(3, 1), stride=(1, 1), pad=(1, 0), output=(3, 2), batch=3
    ),
    "ring": convolution(ring=5),
    "ring of several images": convolution(batch=2, ring=7),
    "stride 3": convolution(stride=(3, 2), size=(17, 17), output=(6, 9), dilation=(1, 1)),
    "table": f"""
constant t: int8[256] = "{"00" * 256}"
func f(x: int8[4], y: int8[4]):
  for i in range(0, 4):
    y[i] = t[cast(int32, x[i]) + 128]
""",
    "tail of a split": """
func f(x: int8[10], y: int8[10]):
  for xo in range(0, 3):
    for xi in range(0, 4):
      if xo * 4 + xi < 10:
        y[xo * 4 + xi] = x[xo * 4 + xi]
""",
    "symbolic extents": """
func f(x: int8[n, m], y: int8[n, m], n: int32 in 1..64, m: int32 in 1..64):
  for i in range(0, n):
    for j in range(0, m):
      y[i, j] = select(i > 0 and (j < 3 or j > 5), x[i - 1, j], int8(0))
""",
    "negated guards": """
func f(x: int8[7], y: int8[20]):
  for i in range(0, 20):
    if not (i < 3 or i >= 10):
      y[i] = x[i - 3]
    else:
      y[i] = select(i >= 13, x[min(i - 13, 6)], int8(0))
""",
    "gather": """
constant t: int32[4] = [1, 0, 6, 2]
func f(x: int8[7], y: int8[4], ids: int32[4]):
  for i in range(0, 4):
    y[i] = x[t[i]]
    y[i] = x[max(0, min(ids[i], 6))]
    let k: int32 = ids[i]
    if k >= 0 and k < 7:
      y[i] = x[k]
""",
    "two different rows": """
func f(x: int8[8], y: int8[8]):
  for i in range(0, 8):
    for j in range(0, 8):
      if i != j and i <= j:
        y[j - i - 1] = x[7 - (j - i)]
""",
    "a named condition": """
func f(x: int8[8], y: int8[8]):
  for i in range(0, 16):
    let inside: bool = i < 8
    if inside:
      y[i] = x[i]
""",
    "dead code": """
func f(x: int8[8], y: int8[8]):
  for i in range(4, 4):
    y[0] = x[i + 100]
""",
}

REFUSED = {
    "one row too many": (convolution(slack=2, pad=(0, 1)), r"index 0 of x\[iy"),
    "one element too many": (
        """
func f(x: int8[10], y: int8[10]):
  for xo in range(0, 3):
    for xi in range(0, 4):
      if xo * 4 + xi < 11:
        y[xo * 4 + xi] = x[0]
""",
        r"function 'f': index 0 of y.* lie in \[0, 10\); known facts: xo .*values: .*\[0, 11\]",
    ),
    "memory may change between two loads": (
        """
func f(x: int8[7], y: int8[4], ids: int32[4]):
  if ids[0] >= 0 and ids[0] < 7:
    y[0] = x[ids[0]]
""",
        r"x\[ids\[0\]\]",
    ),
    "the else branch": (
        """
func f(x: int8[7], y: int8[20]):
  for i in range(0, 20):
    if i < 7:
      y[i] = x[i]
    else:
      y[i] = x[i]
""",
        r"known facts: i in \[0, 20\); not \(i < 7\)",
    ),
    "a condition evaluated too late": (
        """
func f(x: int8[7], y: int8[20]):
  for i in range(0, 20):
    if x[i] > int8(0) and i < 7:
      y[i] = int8(1)
""",
        r"x\[i\]",
    ),
    "a store inside a scope that does not hold": (
        """
func f(x: int8[7], n: int32 in 0..9):
  if n < 7:
    x[n] = int8(1)
  x[n] = int8(2)
""",
        r"n in \[0, 9\]",
    ),
}

KERNEL = """
meaning dot(a: int8[4], b: int8[4], sum: int32[1], n: int32 in 0..4):
  sum[0] = 0
  for i in range(0, n):
    sum[0] = sum[0] + cast(int32, a[i]) * cast(int32, b[i])

func f(x: int8[{rows}, 4], y: int8[16], out: int32[8]):
  for i in range(0, 8):
    call dot(x at [i, {column}], y at [i + 4], out at [i], {count}):
      reads a[0 +: {reach}]
      requires n >= {least}
"""


def kernel(rows: int = 8, column: int = 0, count: str = "4", reach: int = 4, least: int = 1) -> str:
    """A call of a micro-kernel, with one number to get wrong."""
    return KERNEL.format(rows=rows, column=column, count=count, reach=reach, least=least)


@pytest.mark.parametrize("name", PROVEN)
def test_kernels_are_proven(name: str) -> None:
    """Every access of a correct kernel is proven, also of what simplification leaves of it."""
    func = parse_function(PROVEN[name])
    verify(func)
    prove_accesses(func)
    prove_accesses(Simplify()(func))


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_kernels_are_refused(name: str) -> None:
    """An access that may leave its buffer is an error that says where and what is known."""
    text, message = REFUSED[name]
    func = parse_function(text)
    verify(func)
    with pytest.raises(TirError, match=message):
        prove_accesses(func)


def test_micro_kernels_are_proven() -> None:
    """Pointers, contracts and preconditions of a KernelCall are proven."""
    func = parse_function(kernel())
    verify(func)
    prove_accesses(func)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (kernel(column=1), "accesses 4 elements from x"),
        (kernel(rows=7), "index 0 of x"),
        (kernel(count="5"), "argument 'n' of 'dot'"),
        (kernel(reach=5), "accesses elements outside 'a'"),
        (kernel(count="i", least=1), "argument 'n' of 'dot'"),
        (kernel(count="min(i, 4)", least=1), "the precondition n >= 1"),
    ],
)
def test_wrong_micro_kernel_calls_are_refused(text: str, message: str) -> None:
    """A KernelCall that breaks its contract stops the build."""
    with pytest.raises(TirError, match=message):
        prove_accesses(parse_function(text))


SIZED = """
meaning put(y: int8[n], n: int32 in 1..9, first: int32 in 0..8):
  y[first] = int8(0)

func f(y: int8[9]):
  call put(y at [0], 5, {first}):
    writes y[0 +: 5]
    requires first < n
"""


def test_micro_kernels_may_rely_on_preconditions() -> None:
    """What a call is proven to fulfil is known in the kernel, and nothing more."""
    prove_accesses(parse_function(SIZED.format(first=4)))
    with pytest.raises(TirError, match="the precondition first < n"):
        prove_accesses(parse_function(SIZED.format(first=5)))
    without = SIZED.format(first=4).replace("    requires first < n\n", "")
    with pytest.raises(TirError, match=r"index 0 of y\[first\]"):
        prove_accesses(parse_function(without))


def test_arguments_of_invoke_are_proven() -> None:
    """The declared range of a parameter is proven at every call."""
    layer, main = parse("""
func layer(x: int8[4], y0: int32 in 0..4):
  for i in range(y0, 4):
    x[i] = int8(0)

func main(x: int8[4]):
  for r in range(0, 5):
    invoke layer(view(x, int8[4], 0), r)
""")
    prove_accesses(main, {"layer": layer})
    wrong = parse("""
func main(x: int8[4]):
  for r in range(0, 6):
    invoke layer(view(x, int8[4], 0), r)
""")[0]
    with pytest.raises(TirError, match=r"argument 'y0' of 'layer', r, could not be proven"):
        prove_accesses(wrong, {"layer": layer})


def test_thirty_convolutions_take_less_than_a_second() -> None:
    """The proof of a model's accesses does not slow a build down."""
    func = parse_function(convolution(batch=2, ring=7))
    start = time.process_time()
    for _ in range(30):
        prove_accesses(func)
    assert time.process_time() - start < 1.0


@st.composite
def unchecked_functions(draw: st.DrawFn) -> Generator:
    """Random functions whose indices are sums of variables, in bounds or not."""
    return _Unchecked(draw)


class _Unchecked(Generator):
    def index(self, depth: int) -> Expr:
        return self.affine()


@given(unchecked_functions(), st.integers(0, 3))
@settings(max_examples=80)
def test_proven_functions_never_leave_their_buffers(generator: Generator, seed: int) -> None:
    """Whatever is proven runs without an index out of bounds."""
    func = generator.function(generator.block(3))
    try:
        prove_accesses(func)
    except TirError:
        return
    message = ""
    try:
        Interpreter([func], max_steps=20_000).run("f", arguments(seed))
    except InterpreterError as error:
        message = str(error)
    assert not re.search("index .* is outside", message)
