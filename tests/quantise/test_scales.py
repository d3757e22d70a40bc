"""Scales hold what values mean: beside fixed scales, bounds and masks of constants."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.graph.ir import Array, Graph, Tensor
from microtir.operators.activations.definition import Relu, Tanh
from microtir.operators.arithmetic.definition import Add, Minimum, Mul, Sub
from microtir.operators.conditions.definition import Equal, Greater
from microtir.operators.control.definition import EndIf, EndRepeat, Otherwise, Repeat, Then
from microtir.operators.reduction.definition import Sum
from microtir.operators.selection.definition import Select
from microtir.operators.softmax.definition import Softmax
from microtir.operators.state.definition import Assign
from microtir.quantise import QuantiseOptions, Width, quantise
from microtir.rewrite.reference import execute
from tests.support.float_networks import floats
from tests.support.graphs import constant, graph, node, tensor

SHAPE = (1, 8)
LOWEST = float(np.finfo(np.float32).min)


def tensors(*names: str) -> list[Tensor]:
    """Return real tensors of one shape."""
    return [tensor(name, SHAPE) for name in names]


def number(value: float) -> Tensor:
    """Return a constant of one element."""
    return constant(f"number_{value:g}", np.full(1, value, np.float32))


def branch() -> Graph:
    """Return a branch that ends in TANH, or in values above 1."""
    x, relu, tanh, then_end, else_end, y = tensors("x", "relu", "tanh", "then", "else", "y")
    total = tensor("total", (1, 1))
    is_above, begun, turned = (tensor(n, (1, 1), DType.BOOL) for n in ("above", "begun", "turned"))
    nodes = [
        node(Sum((1,), keep_dims=True), [x], total),
        node(Greater(), [total, number(0.0)], is_above),
        node(Then(), [is_above], begun),
        node(Relu(), [x], relu),
        node(Assign(), [relu], then_end),
        node(Otherwise(), [begun], turned),
        node(Tanh(), [x], tanh),
        node(Assign(), [tanh], else_end),
        node(EndIf(), [turned, then_end, else_end], y),
    ]
    return graph(nodes, [x], [y])


def loop() -> Graph:
    """Return a loop that begins with values above 1, and whose turns end in TANH."""
    x, first, turn, tanh, following, y = tensors("x", "first", "turn", "tanh", "next", "y")
    nodes = [
        node(Assign(), [x], first),
        node(Repeat(3), [first], turn),
        node(Tanh(), [turn], tanh),
        node(Assign(), [tanh], following),
        node(EndRepeat(), [turn, following], y),
    ]
    return graph(nodes, [x], [y])


def bounded() -> Graph:
    """Return what a normalisation of Keras does: a bound that no value reaches."""
    x, y = tensors("x", "y")
    return graph([node(Minimum(), [x, number(1e12)], y)], [x], [y])


def masked_by_a_product() -> Graph:
    """Return attention's weights of scores from which an input takes some away, as Keras does."""
    x, m, rest, mask, scores, y = tensors("x", "m", "rest", "mask", "scores", "y")
    nodes = [
        node(Sub(), [number(1.0), m], rest),
        node(Mul(), [rest, number(-1e9)], mask),
        node(Add(), [x, mask], scores),
        node(Softmax(1.0), [scores], y),
    ]
    return graph(nodes, [x, m], [y])


def masked_by_a_sum() -> Graph:
    """Return the same for a constant mask."""
    x, scores, y = tensors("x", "scores", "y")
    mask = constant("mask", np.where(np.arange(8) < 5, 0, -1e9).astype(np.float32)[None])
    return graph([node(Add(), [x, mask], scores), node(Softmax(1.0), [scores], y)], [x], [y])


def masked_by_a_choice() -> Graph:
    """Return the same for a mask of conditions, as PyTorch does."""
    x, scores, y = tensors("x", "scores", "y")
    mask = constant("mask", np.arange(8)[None] < 5)
    nodes = [
        node(Select(), [mask, x, number(LOWEST)], scores),
        node(Softmax(1.0), [scores], y),
    ]
    return graph(nodes, [x], [y])


def stored(value: Array, tensor: Tensor) -> Array:
    """Return real numbers as integers of a tensor."""
    quant = tensor.type.quant
    steps = np.round(value / quant.scale) + quant.zero_point
    return steps.clip(tensor.dtype.min, tensor.dtype.max).astype(tensor.dtype.value)


@pytest.mark.parametrize(("width", "least"), [(Width.INT8, 20.0), (Width.INT16, 60.0)])
@pytest.mark.parametrize(
    "make",
    [branch, loop, bounded, masked_by_a_product, masked_by_a_sum, masked_by_a_choice],
)
def test_a_scale_holds_all_values_that_count_and_no_more(
    make: Callable[[], Graph], width: Width, least: float
) -> None:
    """Neither a fixed scale of another value nor a constant takes the bits of a value."""
    before = make()
    samples = {"x": floats(5, 40, *SHAPE, spread=3.0), "m": floats(6, 40, *SHAPE) > -0.5}
    given = {t.name: samples[t.name].astype(np.float32) for t in before.inputs}
    result = quantise(before, given, QuantiseOptions(width)).graph
    (output,) = result.outputs
    for turn in range(40):
        real = execute(before, {name: values[turn] for name, values in given.items()})["y"]
        inputs = {t.name: stored(given[t.name][turn], t) for t in result.inputs}
        got = execute(result, inputs)["y"]
        quant = output.type.quant
        error = (got.astype(float) - quant.zero_point) * quant.scale - real
        assert (error**2).mean() <= (real**2).mean() * 10 ** (-least / 10)


def test_a_constant_that_is_not_finite_has_no_integers() -> None:
    """A comparison with minus infinity stays in floats, as PyTorch writes it for masks."""
    x, halved, y = tensors("x", "halved", "y")
    is_lowest = tensor("is_lowest", SHAPE, DType.BOOL)
    nodes = [
        node(Mul(), [x, number(0.5)], halved),
        node(Equal(), [halved, number(-np.inf)], is_lowest),
        node(Select(), [is_lowest, number(0.0), halved], y),
    ]
    result = quantise(graph(nodes, [x], [y]), {"x": floats(5, 40, *SHAPE)})
    assert [one.name for one in result.floats] == ["is_lowest_node"]
