"""auto_pad of convolutions and pools, with windows below their strides: as onnxruntime pads."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from onnx import helper

from microtir.errors import UnsupportedModelError
from microtir.frontend import from_onnx
from microtir.rewrite.reference import execute
from tests.support.onnx_models import Array, model_of, run_onnxruntime, typed

pytestmark = pytest.mark.tools

SAME = ("SAME_UPPER", "SAME_LOWER")


def model(operator: str, x: Array, taps: tuple[int, ...], **attributes: Any) -> bytes:
    """A model of one layer."""
    held: dict[str, Array] = {}
    if operator.startswith("Conv"):
        held["w"] = np.random.default_rng(3).normal(size=(2, 2, *taps)).astype(np.float32)
    node = helper.make_node(operator, ["x", *held], ["y"], kernel_shape=taps, **attributes)
    return model_of([node], [typed("x", x)], ["y"], held)


def agreed(operator: str, x: Array, taps: tuple[int, ...], **attributes: Any) -> None:
    """The layer gives what onnxruntime does."""
    made = model(operator, x, taps, **attributes)
    (expected,) = run_onnxruntime(made, {"x": x})
    graph = from_onnx(made).graph
    assert graph is not None
    np.testing.assert_allclose(execute(graph, {"x": x})["y"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose", "AveragePool", "LpPool"])
@pytest.mark.parametrize("automatic", SAME)
def test_lines(operator: str, automatic: str) -> None:
    """Every size, window and stride of a few elements."""
    for size, taps, stride in product((1, 2, 3, 4, 7, 8, 9), (1, 2, 3), (1, 2, 3, 4, 5, 6)):
        x = np.random.default_rng(size).normal(size=(1, 2, size)).astype(np.float32)
        agreed(operator, x, (taps,), auto_pad=automatic, strides=[stride])


@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose", "AveragePool"])
@pytest.mark.parametrize("automatic", SAME)
def test_images(operator: str, automatic: str) -> None:
    """Rows that are padded beside columns that are cut off, and the other way round."""
    x = np.random.default_rng(0).normal(size=(1, 2, 7, 8)).astype(np.float32)
    for taps, strides in (((1, 3), (4, 2)), ((3, 1), (2, 5)), ((1, 2), (3, 4)), ((2, 2), (5, 6))):
        agreed(operator, x, taps, auto_pad=automatic, strides=strides)


def test_gaps_of_a_largest_element_are_refused() -> None:
    """Onnxruntime pads as if windows had no gaps, and ONNX as they are."""
    x = np.zeros((1, 2, 7), np.float32)
    made = model("MaxPool", x, (3,), auto_pad="SAME_UPPER", strides=[2], dilations=[2])
    with pytest.raises(UnsupportedModelError, match="for which onnxruntime ignores the gaps"):
        from_onnx(made)


def test_places_between_windows_are_refused() -> None:
    """Places count in the whole image, which is cut."""
    x = np.zeros((1, 2, 6), np.float32)
    node = helper.make_node(
        "MaxPool", ["x"], ["y", "at"], kernel_shape=[1], strides=[3], auto_pad="SAME_UPPER"
    )
    made = model_of([node], [typed("x", x)], ["y", typed("at", (1, 2, 2), np.int64)])
    with pytest.raises(UnsupportedModelError, match="skips elements between windows"):
        from_onnx(made)
