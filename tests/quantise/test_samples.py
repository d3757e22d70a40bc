"""Samples that do not fit are refused by name, and odd ones are told."""

from __future__ import annotations

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.errors import UsageError
from microtir.graph.ir import Array
from microtir.operators.conversion.definition import CastTo
from microtir.operators.unary.definition import Log
from microtir.quantise import LayerWidth, QuantiseOptions, Width, quantise
from microtir.quantise.samples import Samples
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
        ({"image": IMAGES[0, 0]}, r"\(8, 8, 3\)\n  expected: .*\(samples, 8, 8, 3\)"),
        ({"image": IMAGES.astype(np.float64) * 1e300}, "sample 0 contains a value that is not"),
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


def test_integers_of_another_width_do() -> None:
    """Tokens are int64 in numpy, and few models want that; too large ones are refused."""
    tokens = tensor("tokens", (1, 4), DType.INT32)
    graph_ = graph(
        [node(CastTo(), (tokens,), tensor("y", (1, 4)))], [tokens], [tensor("y", (1, 4))]
    )
    values = np.arange(12).reshape(3, 4)
    samples = Samples.of(graph_, {"tokens": values}, holdout=0.0)
    assert samples.calibrated[1]["tokens"].dtype == np.int32
    with pytest.raises(UsageError, match="type int64"):
        Samples.of(graph_, {"tokens": values + (1 << 40)}, holdout=0.0)


def test_a_quantised_model_is_not_quantised_again() -> None:
    """Float samples of an int8 model are no mistake of types."""
    model = quantise(residual(), {"image": IMAGES}, QuantiseOptions(rounding_work=0.0)).graph
    with pytest.raises(UsageError, match="the model is quantised already"):
        quantise(model, {"image": IMAGES})


def test_patterns_without_a_layer_are_refused() -> None:
    """A misspelt name would leave a layer as it is, and nobody would know."""
    options = QuantiseOptions(layers=(LayerWidth("heat*", Width.INT16),))
    with pytest.raises(UsageError, match=r"no layer has a name like 'heat\*'"):
        quantise(residual(), {"image": IMAGES}, options)


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
