"""What stays in floats between integers is said, with a reason."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from microtir.frontend import FloatLayer, float_layers
from tests.frontend.onnx.test_quantised import Parts
from tests.frontend.onnx.test_quantised_reductions import KINDS, reduction

pytestmark = pytest.mark.tools


def between(
    operator: str, *others: str, **constants: float | list[float]
) -> tuple[FloatLayer, ...]:
    """The layers of floats of a model with an operator between conversions."""
    parts = Parts(np.random.default_rng(1), np.int8)
    x = np.zeros((1, 3, 4, 5), np.float32)
    parts.constants.update({n: np.array(v, np.float32) for n, v in constants.items()})
    data = parts.quantised("input", "x")
    parts.nodes.append(helper.make_node(operator, [data, *others], ["y"]))
    return float_layers(parts.model(x, parts.quantised("y", "result")))


def test_a_constant_operand() -> None:
    """The place of the operator, its conversions, and the bytes of floats before and behind it."""
    (layer,) = between("Add", "c", c=[0.1, 0.2, 0.3, 0.4, 0.5])
    assert (layer.source.operator, layer.source.index) == ("Add", 2)
    assert layer.why.startswith("an operand is a constant")
    assert layer.operators == {1, 2, 3}
    assert layer.ram == 3 * 2 * 60


def test_an_operator_without_a_form() -> None:
    """What is several operators of the graph is one layer."""
    (layer,) = between("LayerNormalization", "c", c=[1, 1, 1, 1, 1])
    assert layer.source.operator == "LayerNormalization"
    assert {1, 2, 3} <= layer.operators


def test_a_scale_that_is_too_small() -> None:
    """Of a softmax, whose powers have 24 bits."""
    parts = Parts(np.random.default_rng(1), np.int8)
    x = np.zeros((2, 5), np.float32)
    parts.nodes.append(helper.make_node("Softmax", [parts.quantised("input", "x")], ["y"]))
    result = parts.quantised("y", "result")
    parts.constants["result_scale"] = np.array(1e-5, np.float32)
    (layer,) = float_layers(parts.model(x, result))
    assert layer.why == "the scale of its result is below 2^-12"


@pytest.mark.parametrize("kind", KINDS)
def test_layers_of_integers_are_not_listed(kind: str) -> None:
    """Neither are the conversions of what a caller gives and takes."""
    assert float_layers(reduction(kind, 2)[0]) == ()
