"""Random programs mean the same before and after every pass."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from microtir.errors import InterpreterError
from microtir.tir.interpreter import Interpreter
from microtir.tir.ir import Array, For, LoopKind, PrimFunc
from microtir.tir.passes import (
    LowerVectorized,
    PartitionLoops,
    Pass,
    Simplify,
    UnrollLoops,
    pipeline,
)
from microtir.tir.text import parse_function, to_text
from microtir.tir.verify import verify
from microtir.tir.visitor import walk
from tests.tir.random_programs import arguments, expression_functions, functions

_STEPS = 20_000


def result(func: PrimFunc, seed: int) -> Array | None:
    """What a function stores; None if it is undefined on these inputs."""
    args = arguments(seed)
    try:
        Interpreter([func], max_steps=_STEPS).run("f", args)
    except InterpreterError:
        return None
    out = args[2]
    assert isinstance(out, np.ndarray)
    return out


def require_same(func: PrimFunc, tir_pass: Pass, seed: int) -> PrimFunc:
    """Runs a pass and compares the results wherever the function was defined."""
    verify(func)
    after = tir_pass(func)
    verify(after)
    expected = result(func, seed)
    if expected is not None:
        actual = result(after, seed)
        assert actual is not None, to_text([func]) + to_text([after])
        np.testing.assert_array_equal(actual, expected, to_text([func]) + to_text([after]))
    return after


@given(expression_functions(), st.integers(0, 3))
@settings(max_examples=80)
def test_simplify_keeps_the_value_of_expressions(func: PrimFunc, seed: int) -> None:
    """Simplify changes no value and adds no error to a random expression."""
    after = require_same(func, Simplify(), seed)
    assert Simplify()(after) is after


@given(functions(), st.integers(0, 3))
@settings(max_examples=40)
def test_simplify_keeps_the_meaning_of_programs(func: PrimFunc, seed: int) -> None:
    """Simplify keeps what a random program stores, and is idempotent."""
    after = require_same(func, Simplify(), seed)
    assert Simplify()(after) is after


@pytest.mark.parametrize("tir_pass", [PartitionLoops(), UnrollLoops(4), LowerVectorized()])
@given(func=functions(), seed=st.integers(0, 3))
@settings(max_examples=25)
def test_loop_passes_keep_the_meaning_of_programs(
    tir_pass: Pass, func: PrimFunc, seed: int
) -> None:
    """Partition, unroll and vectorize keep what a random program stores."""
    require_same(func, tir_pass, seed)


@given(functions(), st.integers(0, 3), st.booleans())
@settings(max_examples=25)
def test_pipeline_keeps_the_meaning_of_programs(
    func: PrimFunc, seed: int, simple_mode: bool
) -> None:
    """The whole pipeline keeps what a random program stores and lowers every loop kind."""
    after = func
    for tir_pass in pipeline(unroll_max_extent=3, simple_mode=simple_mode):
        after = require_same(after, tir_pass, seed)
    kinds = {n.kind for n in walk(after) if isinstance(n, For)}
    left = {LoopKind.SERIAL, LoopKind.UNROLLED} if simple_mode else {LoopKind.SERIAL}
    assert kinds <= left


@given(functions())
@settings(max_examples=30)
def test_text_round_trip(func: PrimFunc) -> None:
    """Parsing the text of a program gives a program of the same text and meaning."""
    text = to_text(func)
    again = parse_function(text)
    assert to_text(again) == text
    expected, actual = result(func, 0), result(again, 0)
    assume(expected is not None)
    np.testing.assert_array_equal(actual, expected)
