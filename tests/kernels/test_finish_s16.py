"""Sums of int16 layers are rescaled as tflite-micro does it, whatever their bits."""

from __future__ import annotations

from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir import te
from microtir.dtype import DType
from microtir.kernels.common import finish_s16
from microtir.kernels.common.finish_s16 import Finish16
from microtir.kernels.common.requantise import WORDS
from microtir.operators.common.linear import LinearParams
from microtir.operators.common.multiplier import QuantizedMultiplier, reduced
from microtir.operators.dense.definition import FullyConnected
from microtir.tir import ir
from microtir.tir.interpreter import Interpreter
from tests.support import graphs

INPUTS = 1000


def reference(total: int, factor: QuantizedMultiplier, params: LinearParams) -> int:
    """Tflite-micro's definition: a multiplier of 15 bits, one rounding, ties up."""
    multiplier, shift = reduced(factor)
    scaled = (total * multiplier + (1 << (14 - shift))) >> (15 - shift)
    return max(params.activation_min, min(params.activation_max, scaled))


def made(
    params: LinearParams, bias: int, *, wide: bool
) -> tuple[Finish16, np.ndarray[tuple[int, ...], np.dtype[np.int32]]] | None:
    """The sequence and the words of a channel whose weights are all 127."""
    weights = np.full((1, INPUTS if wide else 8), 127, np.int8)
    x, y = (
        graphs.tensor(name, (1, depth), DType.INT16, graphs.quant(0.01))
        for name, depth in (("x", weights.shape[1]), ("y", 1))
    )
    tensors = x, graphs.constant("w", weights, graphs.quant(0.01))
    given = graphs.constant("bias", np.array([bias], np.int64))
    node = graphs.node(FullyConnected(), (*tensors, given), y)
    with mock.patch.object(finish_s16, "params_of", return_value=params):
        return finish_s16.finish16(node, wide=wide)


def stored(finish: Finish16, words: np.ndarray[tuple[int, ...], np.dtype[np.int32]],
           sums: list[int]) -> list[int]:  # fmt: skip
    """Results of the sequence for sums of products, by the interpreter."""
    x = te.placeholder((len(sums),), finish.dtype, "x")
    table = te.placeholder((1, WORDS), DType.INT32, "table")

    def result(i: te.Expr) -> te.Expr:
        return finish.output(x[i] + finish.start(word), word)

    def word(number: int) -> te.Expr:
        return table[0, number]

    y = te.compute((len(sums),), result, "y")
    function: ir.PrimFunc = te.create_prim_func([x, table, y], "f", y)
    results = np.zeros(len(sums), np.int16)
    Interpreter([function]).run("f", [np.array(sums, finish.dtype.value), words, results])
    return [int(v) for v in results]


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1 << 30, (1 << 31) - 1), st.integers(-31, 7), st.booleans(), st.booleans(),
    st.integers(0, 34), st.integers(0, 2**32),
)  # fmt: skip
def test_sequences_equal_the_definition(
    multiplier: int, shift: int, wide: bool, relu: bool, bits: int, seed: int
) -> None:
    """For ties, extremes and random sums; factors of small sums are refused from 1/4 on."""
    factor = QuantizedMultiplier(multiplier, shift)
    params = LinearParams(0, 0, (factor,), 0 if relu else -32768, 20000 if relu else 32767)
    rng = np.random.default_rng(seed)
    bias = int(rng.integers(-(1 << bits), 1 << bits)) >> (0 if wide else 6)
    found = made(params, bias, wide=wide)
    if found is None:
        assert shift >= -1 - wide * 4
        return
    largest = (INPUTS if wide else 8) * 127 * 32768
    exact = [half * 2 ** (14 - shift) // reduced(factor).multiplier for half in range(-9, 10, 2)]
    sums = [place + n - bias for place in exact for n in (-1, 0, 1)]
    sums = [s for s in sums if abs(s) <= largest]
    sums += [-largest, largest, 0, *rng.integers(-largest, largest, 20).tolist()]
    assert stored(*found, sums) == [reference(s + bias, factor, params) for s in sums]
