"""Samples that do not fit are refused by name, and odd ones are told."""

from __future__ import annotations

import numpy as np
import pytest

from microtir.errors import UsageError
from microtir.graph.ir import Array
from microtir.operators.unary.definition import Log
from microtir.quantise import QuantiseOptions, quantise
from tests.support.float_networks import image_samples, residual
from tests.support.graphs import graph, node, tensor

IMAGES = image_samples(4)["image"]


def _with_nan() -> Array:
    damaged: Array = IMAGES.copy()
    damaged[2, 0, 1, 1, 1] = np.nan
    return damaged


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ({}, "there are no samples for the input 'image'"),
        ({"image": IMAGES, "imag": IMAGES}, "'imag' is not an input of the model"),
        ({"image": IMAGES[..., :2]}, r"the samples have the shape \(4, 1, 8, 8, 2\)"),
        ({"image": IMAGES[:0]}, r"the samples have the shape \(0, 1, 8, 8, 3\)"),
        ({"image": np.float32(1)}, r"the samples have the shape \(\)"),
        ({"image": IMAGES.astype(np.uint8)}, "the samples have the type uint8"),
        ({"image": _with_nan()}, "sample 2 contains a value that is not finite"),
    ],
)
def test_samples_that_do_not_fit(samples: dict[str, Array], message: str) -> None:
    """The error names the input and says what would be legal."""
    with pytest.raises(UsageError, match=message):
        quantise(residual(), samples)


def test_shapes_without_a_leading_1_and_doubles_do() -> None:
    """An image may lack the axis of one element that the model has before it."""
    options = QuantiseOptions(rounding_work=0.0)
    first = quantise(residual(), {"image": IMAGES}, options)
    second = quantise(residual(), {"image": IMAGES[:, 0].astype(np.float64)}, options)
    assert [r.chosen for r in first.tensors] == [r.chosen for r in second.tensors]


@pytest.mark.parametrize(
    ("samples", "warning"),
    [
        (IMAGES[:1], "there is only one sample"),
        (np.full_like(IMAGES, 0.5), "all samples of 'image' are 0.5"),
        (np.repeat(IMAGES[:1], 4, axis=0), "all samples of 'image' are equal"),
    ],
)
def test_odd_samples_are_told(samples: Array, warning: str) -> None:
    """They quantise, and the result says what is odd."""
    result = quantise(residual(), {"image": samples})
    assert any(warning in text for text in result.warnings)


def test_a_layer_that_is_not_finite_is_named() -> None:
    """The logarithm of a negative number is none."""
    x, y = tensor("x", (1, 4)), tensor("y", (1, 4))
    model = graph([node(Log(), (x,), y)], [x], [y])
    with pytest.raises(
        UsageError, match="result of this layer is not finite for a sample"
    ) as error:
        quantise(model, {"x": -np.ones((3, 1, 4), np.float32)})
    assert "y_node" in str(error.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [("percentile", 50.0), ("percentile", 100.5), ("holdout", 0.95), ("rounding_work", -1.0)],
)
def test_options_out_of_range(field: str, value: float) -> None:
    """The error names the field."""
    with pytest.raises(UsageError, match=f"'{field}' is {value}"):
        QuantiseOptions(**{field: value})  # type: ignore[arg-type]
