"""Calls of C functions outside the program: text, rules, proof, meaning, footprint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.errors import InterpreterError, TirError
from microtir.memory.footprint import Footprints
from microtir.tir.analysis.access import prove_accesses
from microtir.tir.interpreter import Interpreter
from microtir.tir.ir import (
    Allocate,
    Array,
    Buffer,
    BufferArgument,
    ExternCall,
    ExternFunction,
    IntImm,
    PrimFunc,
    Scope,
    Seq,
    Var,
)
from microtir.tir.text import parse, to_text
from microtir.tir.verify import verify
from microtir.tir.visitor import Rewriter, buffers_read, buffers_written, rewrite_function

INT8 = DType.INT8


def _scaled(x: Array, y: Array, factor: int) -> None:
    y[:] = x * factor


def extern(count: int = 4, name: str = "scaled") -> ExternFunction:
    """Y = factor * x, of so many elements."""
    x, y = Buffer("x", (count,), INT8), Buffer("y", (count,), INT8)
    return ExternFunction(
        name, (x, y, Var("factor", low=0, high=9)), (x,), (y,), _scaled, returns_status=True
    )


def caller(function: ExternFunction, factor: int = 3, start: int = 0, rows: int = 2) -> PrimFunc:
    """Applies the function to a row of a matrix."""
    a, b = Buffer("a", (rows, 4), INT8), Buffer("b", (4,), INT8)
    args = (
        BufferArgument(a, (IntImm(1), IntImm(start))),
        BufferArgument(b, (IntImm(0),)),
        IntImm(factor),
    )
    return PrimFunc("main", (a, b), ExternCall(function, args))


def test_text_is_read_back() -> None:
    """Declaration and call are printed and parsed; what Python means by it is not in the text."""
    text = to_text(caller(extern()))
    assert text == (
        "extern scaled(x: int8[4], y: int8[4], factor: int32 in 0..9): reads x writes y status\n\n"
        "func main(a: int8[2, 4], b: int8[4]):\n"
        "  extern scaled(a at [1, 0], b at [0], 3)\n"
    )
    (again,) = parse(text)
    assert to_text(again) == text
    verify(again)
    with pytest.raises(TirError, match="no extern 'other' is declared"):
        parse("func main(b: int8[4]):\n  extern other(b at [0])\n")


def test_meaning_runs_on_the_memory() -> None:
    """The interpreter gives the Python function arrays over the caller's memory."""
    func = caller(extern())
    verify(func)
    prove_accesses(func)
    a, b = np.arange(8, dtype=np.int8).reshape(2, 4), np.zeros(4, np.int8)
    Interpreter([func]).run("main", [a, b], uninitialised=["b"])
    assert b.tolist() == [12, 15, 18, 21]


def test_what_nobody_wrote_is_not_read() -> None:
    """A buffer that the function reads must be written, each byte of it."""
    with pytest.raises(InterpreterError, match="'scaled' reads 'x' before it is written"):
        Interpreter([caller(extern())]).run(
            "main", [np.zeros((2, 4), np.int8), np.zeros(4, np.int8)], uninitialised=["a"]
        )


def test_no_meaning_is_an_error() -> None:
    """Without a function in Python the interpreter says so."""
    func = caller(replace(extern(), meaning=None))
    with pytest.raises(InterpreterError, match="'scaled' has no implementation in Python"):
        Interpreter([func]).run("main", [np.zeros((2, 4), np.int8), np.zeros(4, np.int8)])


REFUSED: dict[str, tuple[Callable[[], None], str]] = {
    "arguments": (
        lambda: verify(replace(caller(extern()), body=ExternCall(extern(), (IntImm(1),)))),
        "1 arguments for 3 parameters (rule extern-arguments)",
    ),
    "name": (
        lambda: verify(caller(extern(name="not a name"))),
        "'not a name' is not a C identifier (rule extern-function)",
    ),
    "foreign buffer": (
        lambda: verify(caller(replace(extern(), reads=(Buffer("z", (4,), INT8),)))),
        "'z' is not one of its parameters",
    ),
    "behind the end": (
        lambda: prove_accesses(caller(extern(), start=1)),
        "'scaled' accesses 4 elements from a[1, 1]",
    ),
    "range": (
        lambda: prove_accesses(caller(extern(), factor=10)),
        "argument 'factor' of 'scaled', 10, could not be proven to lie in [0, 9]",
    ),
    "too small": (
        lambda: prove_accesses(caller(extern(5))),
        "'scaled' accesses 5 elements from b[0]",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    """Rules and proof know what an extern takes."""
    check, message = REFUSED[case]
    with pytest.raises(TirError) as caught:
        check()
    # The first pointer of "too small" starts in the second row and ends behind it, too.
    assert message.replace("b[0]", "a[1, 0]") in str(caught.value).replace("b[0]", "a[1, 0]")


def test_a_constant_is_not_written() -> None:
    """What lies in flash may be read by an extern only."""
    data = np.zeros(4, np.int8)
    table = Buffer("table", (4,), INT8, Scope.CONSTANT, data)
    b = Buffer("b", (4,), INT8)
    first, second = BufferArgument(table, (IntImm(0),)), BufferArgument(b, (IntImm(0),))
    verify(PrimFunc("main", (b,), ExternCall(extern(), (first, second, IntImm(1)))))
    with pytest.raises(TirError, match="writes a constant through 'y'"):
        verify(PrimFunc("main", (b,), ExternCall(extern(), (second, first, IntImm(1)))))


def test_local_memory_is_written_first() -> None:
    """A local array must be written before an extern reads it; its own writes count."""
    b, local = Buffer("b", (4,), INT8), Buffer("local", (4,), INT8, Scope.LOCAL)
    to, from_ = (BufferArgument(x, (IntImm(0),)) for x in (b, local))
    wrong = ExternCall(extern(), (from_, to, IntImm(1)))
    right = ExternCall(extern(), (to, from_, IntImm(1)))
    verify(PrimFunc("main", (b,), Allocate(local, Seq((right, wrong)))))
    with pytest.raises(TirError, match="'local' may be read before it is written"):
        verify(PrimFunc("main", (b,), Allocate(local, Seq((wrong, right)))))


def test_who_reads_and_writes_what() -> None:
    """Analyses take the declared buffers for read and written, whole."""
    func = caller(extern())
    a, b = func.params
    assert (buffers_read(func), buffers_written(func)) == ((a,), (b,))
    (spans,) = Footprints().of(func, ())
    assert [(s.param, s.start, s.stop, s.is_write) for s in spans] == [
        (a, 4, 8, False),
        (b, 0, 4, True),
    ]


def test_rewriting_reaches_the_arguments() -> None:
    """A rewriter sees the arguments, and keeps the call where nothing changes."""

    class Other(Rewriter):
        def buffer(self, buffer: Buffer) -> Buffer:
            return other if buffer is func.params[1] else buffer

    func = caller(extern())
    other = Buffer("other", (4,), INT8)
    assert rewrite_function(func, Rewriter()) is func
    assert buffers_written(rewrite_function(func, Other())) == (other,)
