"""Operators whose result has a shape that the file gives, and places that count in it."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import microtir
from microtir import frontend, host
from microtir.errors import MicrotirError
from microtir.frontend import from_onnx
from microtir.rewrite.reference import execute
from tests.frontend.onnx.test_readers import check, drawn
from tests.support.onnx_models import (
    Array,
    model_of,
    run_onnxruntime,
    typed,
    with_inferred_outputs,
)

pytestmark = pytest.mark.tools

SAMPLE = settings(max_examples=40, deadline=None)
PLACES = helper.make_tensor_value_info("i", TensorProto.INT64, None)


def many(data: st.DataObject, low: int, high: int, count: int) -> list[int]:
    """Return some integers."""
    return list(data.draw(st.tuples(*[st.integers(low, high)] * count)))


def coarse(data: st.DataObject, *shape: int) -> Array:
    """Return values of which many are equal, as behind a ReLU."""
    return np.asarray(np.maximum(np.round(drawn(data, *shape)), 0), np.float32)


def unpooling(shape: tuple[int, ...], wanted: tuple[int, ...] | None, **window: Any) -> bytes:
    """A model that pools an image, changes what is left, and puts it back."""
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p", "i"], **window),
        helper.make_node("Sub", ["p", "c"], ["z"]),
        helper.make_node("MaxUnpool", ["z", "i"] + ["s"] * (wanted is not None), ["y"], **window),
    ]
    constants = {"s": np.array(wanted or shape), "c": np.array(0.5, np.float32)}
    return model_of(nodes, [typed("x", shape)], ["y"], constants)


@given(st.data(), st.booleans())
@SAMPLE
def test_unpooling(data: st.DataObject, is_given: bool) -> None:
    """Places count in the given shape; the last of windows that overlap counts."""
    rank = data.draw(st.integers(1, 3))
    shape = (*many(data, 1, 2, 2), *many(data, 3, 6, rank))
    window = {"kernel_shape": many(data, 1, 3, rank), "strides": many(data, 1, 3, rank)}
    more = many(data, 0, 1, rank)
    wanted = (*shape[:2], *(a + b for a, b in zip(shape[2:], more, strict=True)))
    check_both(unpooling(shape, wanted if is_given else None, **window), coarse(data, *shape))


def check_both(model: bytes, x: Array) -> None:
    """The graph computes what onnxruntime does; it refuses only where onnxruntime may stop."""
    for problem in frontend.check(model):
        assert "its indices are 0 to" in str(problem)
        assert "pass the shape of MaxPool's input" in str(problem)
        return
    check(model, x=x)


def test_unpooling_in_c() -> None:
    """The C puts the last of equal places into the shape that is given."""
    x = np.maximum(np.random.default_rng(1).standard_normal((1, 2, 7, 9)), 0).astype(np.float32)
    model = unpooling((1, 2, 7, 9), (1, 2, 7, 9), kernel_shape=[3, 2], strides=[1, 2])
    (want,) = run_onnxruntime(with_inferred_outputs(model), {"x": x})
    (got,) = host.load(microtir.build(from_onnx(model))).run({"x": x}).values()
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("places", "wanted", "words"),
    [
        ([[[[0, 1], [2, 16]]]], (1, 1, 4, 4), "its indices are 0 to 16"),
        ([[[[0, 1], [2, -1]]]], (1, 1, 4, 4), "its indices are -1 to 2"),
        ([[[[0, 1]]]], (1, 1, 4, 4), "its indices have the shape (1, 1, 1, 2)"),
        ([[[[0, 1], [2, 3]]]], (2, 1, 4, 4), "the shape (2, 1, 4, 4) for (1, 1, 4, 4)"),
        ([[[[0, 1], [2, 3]]]], (1, 1, 4, 3), "the shape (1, 1, 4, 3) for (1, 1, 4, 4)"),
    ],
)
def test_places_that_do_not_fit(places: list[Any], wanted: tuple[int, ...], words: str) -> None:
    """Known places outside of the result are an error, and shapes that contradict the operands."""
    node = helper.make_node(
        "MaxUnpool", ["x", "i", "s"], ["y"], kernel_shape=[2, 2], strides=[2, 2]
    )
    constants = {"i": np.array(places, np.int64), "s": np.array(wanted)}
    with pytest.raises(MicrotirError) as caught:
        from_onnx(model_of([node], [typed("x", (1, 1, 2, 2))], ["y"], constants))
    assert words in str(caught.value)


@given(st.data(), st.integers(0, 1), st.booleans())
@SAMPLE
def test_places_of_equal_elements(data: st.DataObject, by_column: int, rounds_up: bool) -> None:
    """MaxPool names the first of equal elements, row by row, however the places are counted."""
    rank = data.draw(st.integers(1, 3))
    x = coarse(data, *many(data, 1, 2, 2), *many(data, 4, 6, rank))
    window: dict[str, Any] = {
        "kernel_shape": many(data, 2, 3, rank),
        "strides": many(data, 1, 3, rank),
    }
    node = helper.make_node(
        "MaxPool", ["x"], ["y", "i"], storage_order=by_column, ceil_mode=int(rounds_up), **window
    )
    check(model_of([node], [typed("x", x)], ["y", PLACES]), x=x)


@given(st.data(), st.sampled_from(["nearest", "linear"]))
@SAMPLE
def test_upsampling(data: st.DataObject, mode: str) -> None:
    """The operator of older sets picks the pixel at or before a place."""
    x = drawn(data, 1, 2, *many(data, 2, 5, 2))
    scales = [1, 1, *data.draw(st.tuples(*[st.floats(1, 3, width=16)] * 2))]
    node = helper.make_node("Upsample", ["x", "s"], ["y"], mode=mode)
    check(model_of([node], [typed("x", x)], ["y"], {"s": np.array(scales, np.float32)}, 9), x=x)


@given(
    st.data(),
    st.sampled_from(["nearest", "linear", "cubic"]),
    st.sampled_from(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]),
)
@SAMPLE
def test_resizing_by_scales(data: st.DataObject, mode: str, places: str) -> None:
    """Corners are those of the result; what keeps its extents is as it was."""
    x = drawn(data, 1, 2, *many(data, 2, 6, 2))
    scales = [1, 1, *data.draw(st.tuples(*[st.floats(0.5, 3, width=16)] * 2))]
    node = helper.make_node(
        "Resize", ["x", "", "s"], ["y"], mode=mode, coordinate_transformation_mode=places
    )
    check(model_of([node], [typed("x", x)], ["y"], {"s": np.array(scales, np.float32)}, 19), x=x)


@given(st.data(), st.sampled_from(["not_larger", "not_smaller"]))
@SAMPLE
def test_resizing_in_proportion(data: st.DataObject, policy: str) -> None:
    """Sizes are limits; what follows from them is no whole multiple of the axis."""
    x = drawn(data, *many(data, 2, 5, 2))
    node = helper.make_node(
        "Resize", ["x", "", "", "s"], ["y"], mode="nearest", nearest_mode="floor",
        coordinate_transformation_mode="align_corners", keep_aspect_ratio_policy=policy,
    )  # fmt: skip
    sizes = np.array(many(data, 2, 9, 2))
    check(model_of([node], [typed("x", x)], ["y"], {"s": sizes}, 19), x=x)


@given(st.data(), st.sampled_from(["NOTSET", "SAME_UPPER", "SAME_LOWER"]))
@SAMPLE
def test_transposed_convolution_into_a_shape(data: st.DataObject, automatic: str) -> None:
    """What the shape has less than follows is cut off at both ends."""
    rank = data.draw(st.integers(1, 2))
    sizes, taps, strides = many(data, 2, 5, rank), many(data, 1, 3, rank), many(data, 1, 3, rank)
    less = many(data, 0, 2, rank)
    shape = [
        max(stride * (size - 1) + tap - cut, 1)
        for size, tap, stride, cut in zip(sizes, taps, strides, less, strict=True)
    ]
    node = helper.make_node(
        "ConvTranspose", ["x", "w"], ["y"], output_shape=shape, strides=strides, auto_pad=automatic
    )
    x, weights = drawn(data, 1, 2, *sizes), drawn(data, 2, 3, *taps)
    check(model_of([node], [typed("x", x)], ["y"], {"w": weights}), x=x)


@pytest.mark.parametrize("operator", ["ScatterElements", "ScatterND"])
def test_the_last_of_several_updates(operator: str) -> None:
    """At computed places, as at known ones, in the graph and in C."""
    x, updates = np.ones((6, 2), np.float32), np.arange(1, 11, dtype=np.float32).reshape(5, 2)
    places = np.array([[3, 3], [1, 0], [3, 3], [-1, 5], [1, 1]])
    if operator == "ScatterND":
        places = places[:, :1]
    node = helper.make_node(operator, ["x", "i", "u"], ["y"])
    inputs = {"x": x, "i": places, "u": updates}
    model = model_of([node], [typed(name, array) for name, array in inputs.items()], ["y"])
    check(model, **inputs)
    (want,) = run_onnxruntime(with_inferred_outputs(model), inputs)
    (got,) = host.load(microtir.build(from_onnx(model))).run(inputs).values()
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_ceil", "round_prefer_floor"])
@pytest.mark.parametrize("places", ["half_pixel_symmetric", "asymmetric"])
def test_places_near_the_middle(rounding: str, places: str) -> None:
    """Of places that are whole or in the middle in exact numbers, floats are to one side."""
    factors = (1 / 3, 2 / 3, 0.3, 0.4, 4 / 7, 0.6, 7 / 9, 1.25, 1.6, 2.6, 3)
    for size, factor in product(range(1, 12, 2), factors):
        extent = int(np.floor(np.float32(size * np.float32(factor))))
        if extent < 1:
            continue
        x = np.arange(size, dtype=np.float32).reshape(1, 1, 1, size)
        node = helper.make_node(
            "Resize", ["x", "", "s"], ["y"], mode="nearest", nearest_mode=rounding,
            coordinate_transformation_mode=places,
        )  # fmt: skip
        held = {"s": np.array([1, 1, 1, factor], np.float32)}
        model = model_of([node], [typed("x", x)], ["y"], held)
        graph = from_onnx(model).graph
        assert graph is not None
        (expected,) = run_onnxruntime(model, {"x": x})
        np.testing.assert_array_equal(execute(graph, {"x": x})["y"], expected)
