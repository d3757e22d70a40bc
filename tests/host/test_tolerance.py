"""Which differences of floats are legal: the rule, and the exact values behind it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.graph.ir import Array, Graph
from microtir.host.compare import Comparison, compare
from microtir.host.tolerance import (
    PLAUSIBLE,
    RelativeTolerance,
    Rounding,
    Values,
    largest_share,
    rounding_of,
    tolerance_of,
)
from microtir.operators import OPERATORS
from microtir.operators.activations.definition import Relu
from microtir.operators.arithmetic.definition import Add, Sub
from microtir.operators.dense.definition import FullyConnected
from microtir.rewrite.facts.macs import terms
from microtir.rewrite.reference import execute, execute_exactly
from tests.support.graphs import constant, graph, node, quant, tensor
from tests.support.operator_cases import generate

UNIT = 2.0**-24
TERMS = 100
LIMIT = 8 * math.sqrt(TERMS) * UNIT  # of a largest value of 1


def judged(ours: float, oracle: float, exact: float, *, is_hybrid: bool = False) -> Comparison:
    """One value beside another of 1, which is exact everywhere."""

    def values(value: float) -> Values:
        return {"y": np.array([1.0, value], np.float64)}

    rule = Rounding(TERMS, lambda _sample: values(exact), is_hybrid)
    return compare([values(oracle)], [values(ours)], rule)


@pytest.mark.parametrize(
    ("ours", "oracle", "exact", "legal"),
    [
        (0.99 * LIMIT, 0.0, 0.0, True),
        (-0.99 * LIMIT, 0.99 * LIMIT, 0.0, True),  # on both sides, each as near as the other
        (1.01 * LIMIT, 0.0, 0.0, False),
        (1.9 * LIMIT, LIMIT, 0.0, True),  # less than twice as far as the reference
        (2.1 * LIMIT, LIMIT, 0.0, False),
        (-4.1 * LIMIT, -2 * LIMIT, 0.0, False),
        (0.0, 20 * LIMIT, 0.0, True),  # the reference is the rough one
        (0.0, 1.1 * PLAUSIBLE, 0.0, False),  # and of another model
        (math.nan, 0.0, 0.0, False),
        (0.0, math.nan, 0.0, False),
        (math.inf, 0.0, 0.0, False),
    ],
)
def test_the_rule(ours: float, oracle: float, exact: float, legal: bool) -> None:
    """What is legal is measured from the exact value, not from another float32 computation."""
    assert judged(ours, oracle, exact).equal is legal


def test_hybrid_references_are_rough() -> None:
    """Activations of 8 bits in a reference are excused up to a sixteenth, and its error is told."""
    found = judged(0.0, 0.03, 0.0, is_hybrid=True)
    assert found.equal and found.reference_error == pytest.approx(0.03)
    assert not judged(0.0, 0.03, 0.0).equal
    assert not judged(0.0, 0.07, 0.0, is_hybrid=True).equal


def test_exact_values_are_asked_for_where_they_matter() -> None:
    """What is within half the limit is legal whatever is exact, and costs no second evaluation."""

    def exact(_sample: int) -> Values:
        raise AssertionError

    rule = Rounding(TERMS, exact)
    y = np.array([1.0, 0.0], np.float32)
    assert compare([{"y": y}], [{"y": y + np.float32(0.4 * LIMIT)}], rule).equal
    near = np.linspace(-0.49, 0.49, 9) * LIMIT
    for error in np.linspace(-3, 3, 13) * LIMIT:  # for any error of the reference
        for ours in near:
            assert abs(ours + error) <= max(2 * abs(error), LIMIT)


def chain(terms: int) -> tuple[Graph, dict[str, Array]]:
    """Two layers whose sums are of `terms` and of 3 terms."""
    rng = np.random.default_rng(terms)
    x, a, y = tensor("x", (1, terms)), tensor("a", (1, 3)), tensor("y", (1, 4))
    first = constant("first", rng.standard_normal((3, terms)).astype(np.float32))
    second = constant("second", rng.standard_normal((4, 3)).astype(np.float32))
    nodes = [
        node(FullyConnected(), (x, first), a),
        node(FullyConnected(), (a, second), y),
    ]
    return graph(nodes, [x], [y]), {"x": rng.standard_normal((1, terms)).astype(np.float32)}


def test_sums_in_any_order_are_legal() -> None:
    """The rule takes what CPUs make of a sum: forwards, backwards, in lanes, all in float32."""
    model, inputs = chain(2048)
    rule = rounding_of(model, [inputs])
    assert rule.terms == 2048
    weights = [np.asarray(n.inputs[1].data) for n in model.nodes]
    products = inputs["x"] * weights[0]
    for order in (products, products[:, ::-1], products.reshape(3, -1, 16).swapaxes(1, 2)):
        total = np.zeros(3, np.float32)
        for column in np.ascontiguousarray(order).reshape(3, -1).T:
            total = total + column
        got = (weights[1] @ total).reshape(1, 4).astype(np.float32)
        assert compare([execute(model, inputs)], [{"y": got}], rule).equal
        off = got + np.float32(2 * rule.share) * np.abs(got).max()
        assert not compare([execute(model, inputs)], [{"y": off}], rule).equal


def test_a_tolerance_of_the_user_replaces_the_rule() -> None:
    """--rtol is what it was: a share of the largest reference value, of all layers."""
    model, inputs = chain(8)
    assert tolerance_of(model, [inputs], 0.1) == RelativeTolerance(0.1)
    assert isinstance(tolerance_of(model, [inputs], None), Rounding)
    assert RelativeTolerance(0.1).for_node(model.nodes[0], []) == RelativeTolerance(0.1)
    assert rounding_of(model, [inputs]).for_node(model.nodes[1], []).terms == 3


@pytest.mark.parametrize("operator", [record.name for record in OPERATORS if record.tflite])
def test_exact_values_of_every_operator(operator: str) -> None:
    """Floats come out in float64 and near the float32 meaning; integers keep their bits."""
    for dtype in ("float32", "int8"):
        try:
            case = generate(operator, 5, dtype)
        except (KeyError, ValueError):
            continue
        model, inputs = case.graph(), case.named_inputs()
        exact = execute_exactly(model, inputs)
        for name, array in execute(model, inputs).items():
            if array.dtype == np.float32:
                assert exact[name].dtype == np.float64
                largest = max(float(np.abs(array).max(initial=0)), 1e-6)
                np.testing.assert_allclose(exact[name], array, rtol=0, atol=1e-6 * largest)
            else:
                np.testing.assert_array_equal(exact[name], array)
        assert terms(model.nodes[0]) >= 1


def test_nothing_is_rounded_between_layers() -> None:
    """A sum that float32 loses on the way is there in the exact output."""
    x, a, y = (tensor(name, (1, 2)) for name in "xay")
    one = constant("one", np.array([[1.0, 1.0]], np.float32))
    big = constant("big", np.array([[2.0**30, 2.0**30]], np.float32))
    nodes = [node(Add(), (x, big), a), node(Sub(), (a, big), y)]
    model = graph(nodes, [x], [y])
    inputs = {"x": np.asarray(one.data)}
    assert execute(model, inputs)["y"].tolist() == [[0.0, 0.0]]
    assert execute_exactly(model, inputs)["y"].tolist() == [[1.0, 1.0]]


def test_share_of_a_device() -> None:
    """A device that knows references only allows what the rule does, measured from them."""
    model, inputs = chain(64)
    rule = rounding_of(model, [inputs])
    expected = execute(model, inputs)
    assert rule.share <= largest_share([expected], rule) <= 2 * rule.share
    rough = {"y": expected["y"] + np.float32(0.01) * np.abs(expected["y"]).max()}
    assert largest_share([rough], rule) == pytest.approx(0.03, rel=0.05)
    x = tensor("x", (1, 2), DType.INT8, quant(0.5))
    y = tensor("y", (1, 2), DType.INT8, quant(0.5))
    whole = graph([node(Relu(), (x,), y)], [x], [y])
    some = {"x": np.zeros((1, 2), np.int8)}
    assert largest_share([some], rounding_of(whole, [some])) == pytest.approx(8 * UNIT)
