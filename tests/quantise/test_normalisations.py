"""Normalisations become integers that tflite-micro has kernels for."""

from __future__ import annotations

import numpy as np
import pytest

import microtir
from microtir import host
from microtir.config import Numerics
from microtir.frontend import from_tflite
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.operators.arithmetic.definition import Add, Mul, SquaredDifference, Sub
from microtir.operators.division.definition import Div
from microtir.operators.reduction.definition import Mean
from microtir.operators.unary.definition import Rsqrt, Sqrt
from microtir.quantise import QuantiseOptions, Width, quantise
from microtir.rewrite.reference import execute
from microtir.rewrite.requests.numerics import ChooseNumerics
from microtir.writers import tflite_bytes
from tests.support.float_networks import floats
from tests.support.graphs import constant, graph, node, tensor
from tests.support.litert import run_litert
from tests.support.tflm import run_tflm


def _normalised(*, inverse_first: bool) -> Graph:
    """Return a layer normalisation as exporters write it: a quotient by a square root, or by 1."""
    x, spread = tensor("x", (1, 6, 16)), constant("epsilon", np.array([1e-5], np.float32))
    squares, centred, y = (tensor(name, x.shape) for name in ("squares", "centred", "y"))
    names = ("mean", "variance", "shifted", "deviation")
    mean, variance, shifted, deviation = (tensor(name, (1, 6, 1)) for name in names)
    one, factor = constant("one", np.ones((), np.float32)), tensor("factor", (1, 6, 1))
    last = (
        [node(Div(), (one, deviation), factor), node(Mul(), (centred, factor), y)]
        if inverse_first
        else [node(Div(), (centred, deviation), y)]
    )
    return graph(
        [
            node(Mean(axes=(2,), keep_dims=True), (x,), mean),
            node(SquaredDifference(), (x, mean), squares),
            node(Mean(axes=(2,), keep_dims=True), (squares,), variance),
            node(Add(), (variance, spread), shifted),
            node(Sqrt(), (shifted,), deviation),
            node(Sub(), (x, mean), centred),
            *last,
        ],
        [x],
        [y],
    )


@pytest.mark.parametrize("inverse_first", [False, True])
def test_quotients_by_roots_run_in_tflite_micro(*, inverse_first: bool) -> None:
    """It has no SQRT of integers: they become products with RSQRT, of the same bits everywhere."""
    result = quantise(_normalised(inverse_first=inverse_first), {"x": floats(3, 40, 1, 6, 16)})
    assert not result.floats
    kinds = [type(node.op) for node in result.graph.nodes]
    assert kinds.count(Rsqrt) == kinds.count(Mul) == 1
    assert result.layers[-1].sqnr >= 25.0
    x = np.random.default_rng(8).integers(-128, 128, (1, 6, 16), np.int8)
    expected = execute(result.graph, {"x": x})["y"]
    np.testing.assert_array_equal(run_tflm(tflite_bytes(result.graph), x)[0], expected)


@pytest.mark.parametrize("numerics", [Numerics.TFLM, Numerics.TFLITE_REF])
@pytest.mark.parametrize("least", [0.001, 0.3])
def test_roots_of_16_bits_are_those_of_a_reference(numerics: Numerics, least: float) -> None:
    """tflite-micro computes each, and LiteRT has a table, also at 0, where there is no root."""
    x, y = tensor("x", (1, 4096)), tensor("y", (1, 4096))
    samples = np.random.default_rng(0).uniform(least, 3.0, (8, 1, 4096)).astype(np.float32)
    result = quantise(
        graph([node(Rsqrt(), (x,), y)], [x], [y]), {"x": samples}, QuantiseOptions(Width.INT16)
    )
    file = tflite_bytes(result.graph)
    again = from_tflite(file).graph
    assert again is not None
    chosen = ChooseNumerics(numerics)(again)
    program = host.load(microtir.build(IRModule(graph=chosen)), opt_level=0)
    run = run_tflm if numerics is Numerics.TFLM else run_litert
    for first in (0, 4096, 28672):
        inputs = {"x": np.arange(first, first + 4096, dtype=np.int16).reshape(1, 4096)}
        (expected,) = run(file, inputs["x"])
        np.testing.assert_array_equal(execute(chosen, inputs)["y"], expected)
        np.testing.assert_array_equal(program.run(inputs)["y"], expected)
