"""Operators that work axis by axis, at computed places, and step by step, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper

from microtir.errors import ModelFileError
from microtir.frontend import from_onnx
from tests.frontend.onnx.test_readers import check, drawn, window
from tests.support.onnx_models import Array, model_of, typed

pytestmark = pytest.mark.tools

SAMPLE = settings(max_examples=20, deadline=None)


def one(operator: str, x: Array, constants: dict[str, Array] | None = None, **more: Any) -> None:
    """Compare an operator of one computed input and constants."""
    names = list(constants or {})
    outputs = [f"y{n}" for n in range(more.pop("outputs", 1))]
    opset = more.pop("opset", 22)
    node = helper.make_node(operator, ["x", *names], outputs, **more)
    held = {name: array for name, array in (constants or {}).items() if name}
    check(model_of([node], [typed("x", x)], outputs, held, opset), x=x)


@given(
    st.data(),
    st.sampled_from(
        ["ab,bc->ac", "abc,cd->abd", "abc,abd->acd", "a,b->ab", "ab,ab->", "aab->ab", "...a,ab",
         "ab,bc,cd->ad", "ab->ba", "abc->b", "ij,ji->i", "ab,b->a"]
    ),
)  # fmt: skip
@SAMPLE
def test_einsum(data: st.DataObject, equation: str) -> None:
    """Sums, diagonals, stacks, several operands, and an ellipsis."""
    extents = {letter: data.draw(st.integers(1, 4)) for letter in "abcdij."}
    terms = equation.partition("->")[0].replace("...", ".").split(",")
    arrays = {f"x{n}": drawn(data, *(extents[c] for c in term)) for n, term in enumerate(terms)}
    node = helper.make_node("Einsum", list(arrays), ["y"], equation=equation)
    ports = [typed(name, array) for name, array in arrays.items()]
    check(model_of([node], ports, ["y"]), **arrays)


@given(
    st.data(),
    st.sampled_from(["nearest", "linear", "cubic"]),
    st.sampled_from(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]),
    st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_resize(data: st.DataObject, mode: str, places: str, antialias: bool) -> None:
    """Every mode that onnxruntime has for images, by sizes, up and down."""
    x = drawn(data, 1, 2, *data.draw(st.tuples(*[st.integers(2, 6)] * 2)))
    sizes = np.array([1, 2, *data.draw(st.tuples(*[st.integers(2, 9)] * 2))])
    attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": places}
    if mode == "nearest":
        roundings = ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]
        attributes["nearest_mode"] = data.draw(st.sampled_from(roundings))
    elif antialias and places != "align_corners":
        attributes["antialias"] = 1
    if mode == "cubic" and not antialias:
        attributes["exclude_outside"] = data.draw(st.integers(0, 1))
    # A place in the middle of two pixels is rounded to either by what rounding made of it.
    assume(mode != "nearest" or places == "asymmetric")
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], **attributes)
    check(model_of([node], [typed("x", x)], ["y"], {"sizes": sizes}, 19), x=x)


@given(
    st.data(),
    st.sampled_from(["linear", "nearest", "cubic"]),
    st.sampled_from(["zeros", "border", "reflection"]),
    st.integers(0, 1),
)
@SAMPLE
def test_grid_sample(data: st.DataObject, mode: str, outside: str, aligned: int) -> None:
    """Places inside and outside of the image, computed while the model runs."""
    x = drawn(data, 2, 2, *data.draw(st.tuples(*[st.integers(2, 5)] * 2)))
    grid = drawn(data, 2, 3, 2, 2)
    node = helper.make_node(
        "GridSample", ["x", "g"], ["y"], mode=mode, padding_mode=outside, align_corners=aligned
    )
    check(model_of([node], [typed("x", x), typed("g", grid)], ["y"], opset=20), x=x, g=grid)


@given(st.data(), st.sampled_from(["MaxPool", "AveragePool", "LpPool"]))
@SAMPLE
def test_pools_of_volumes(data: st.DataObject, operator: str) -> None:
    """Three axes, and windows with gaps."""
    rank = data.draw(st.integers(1, 3))
    attributes = window(data, rank, dilated=operator == "MaxPool")
    # Padding to one size leaves the gaps of windows out there.
    assume("dilations" not in attributes or "pads" in attributes)
    if operator == "AveragePool":
        attributes["count_include_pad"] = data.draw(st.integers(0, 1))
    if operator != "LpPool":
        attributes["ceil_mode"] = data.draw(st.integers(0, 1))
    assume(operator == "AveragePool" or "ceil_mode" not in attributes or rank != 3)
    # Strides beyond the window leave less than nothing to pad: onnxruntime refuses that of MaxPool,
    # takes it away from the image of the others, and ONNX's own reference fails.
    strides = attributes.get("strides", [1] * rank)
    is_short = any(s > t for s, t in zip(strides, attributes["kernel_shape"], strict=True))
    assume(not is_short or "pads" in attributes)
    one(operator, drawn(data, 1, 2, *(5, 6, 7)[:rank]), **attributes)


@given(st.data(), st.booleans(), st.booleans())
@SAMPLE
def test_fourier(data: st.DataObject, is_complex: bool, is_inverse: bool) -> None:
    """Real and complex signals of any length, along any axis."""
    shape = (*data.draw(st.tuples(*[st.integers(1, 6)] * 2)), 2 if is_complex else 1)
    axis = data.draw(st.integers(0, 1))
    one_sided = int(not is_inverse and not is_complex and data.draw(st.booleans()))
    constants = {"": np.zeros(0), "axis": np.array(axis)}
    one("DFT", drawn(data, *shape), constants, inverse=int(is_inverse), onesided=one_sided)


@given(st.data())
@SAMPLE
def test_frames(data: st.DataObject) -> None:
    """Frames that overlap, with a window."""
    size, step = data.draw(st.integers(2, 5)), data.draw(st.integers(1, 3))
    held = {"step": np.array(step), "window": drawn(data, size)}
    one("STFT", drawn(data, 2, 9, 1), held, onesided=data.draw(st.integers(0, 1)))


@given(st.data(), st.integers(0, 1))
@SAMPLE
def test_ranks(data: st.DataObject, largest: int) -> None:
    """The largest and the smallest, along any axis."""
    x = drawn(data, 3, 5).round(0)
    axis = data.draw(st.integers(-2, 1))
    count = np.array([data.draw(st.integers(1, 3))])
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], axis=axis, largest=largest)
    outputs = ["y", typed("i", (None, None), np.int64)]
    check(model_of([node], [typed("x", x)], outputs, {"k": count}), x=x)


@pytest.mark.parametrize(
    ("operator", "low", "high"),
    [
        ("Tan", -1.5, 1.5), ("Asin", -1, 1), ("Acos", -1, 1), ("Atan", -50, 50),
        ("Sinh", -20, 20), ("Cosh", -20, 20), ("Asinh", -1e6, 1e6), ("Acosh", 1, 1e6),
        ("Atanh", -0.999, 0.999),
    ],
)  # fmt: skip
def test_angles(operator: str, low: float, high: float) -> None:
    """Over their range, and close to 0."""
    even = np.linspace(low, high, 101)
    small = np.array([1e-6, -1e-6, 1e-3]) if low < 0 else np.array([1.0, 1.0 + 1e-6, 1.001])
    x = np.concatenate([even, small]).astype(np.float32)
    one(operator, x)


@given(st.data(), st.sampled_from(["RNN", "GRU", "LSTM"]))
@settings(max_examples=40, deadline=None)
def test_recurrent_layers(data: st.DataObject, operator: str) -> None:
    """Both directions, states from outside, biases, peepholes, limits, and several lengths."""
    way = data.draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    count = 2 if way == "bidirectional" else 1
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[operator]
    steps, n, width, size = (data.draw(st.integers(1, 3)) for _ in range(4))
    attributes: dict[str, Any] = {"direction": way, "hidden_size": size}
    if data.draw(st.booleans()):
        attributes["clip"] = 0.5
    if operator == "GRU":
        attributes["linear_before_reset"] = data.draw(st.integers(0, 1))
    rows = gates * size
    held = {"w": drawn(data, count, rows, width), "r": drawn(data, count, rows, size)}
    names = ["x", "w", "r", "", "", ""]
    if data.draw(st.booleans()):
        held["b"], names[3] = drawn(data, count, 2 * gates * size), "b"
    if data.draw(st.booleans()):
        held["h"], names[5] = drawn(data, count, n, size), "h"
    if data.draw(st.booleans()):
        lengths = data.draw(st.lists(st.integers(1, steps), min_size=n, max_size=n), "lengths")
        held["l"], names[4] = np.array(lengths, np.int32), "l"
    if operator == "LSTM" and data.draw(st.booleans()):
        held["p"] = drawn(data, count, 3 * size)
        names += ["", "p"]
    x = drawn(data, steps, n, width)
    outputs = ["y", "h_end", "c_end"][: 3 if operator == "LSTM" else 2]
    node = helper.make_node(operator, names, outputs, **attributes)
    check(model_of([node], [typed("x", x)], outputs, held), x=x)


@pytest.mark.parametrize("lengths", [[3], [3, 4], [0, 3]])
def test_lengths_that_are_not_those_of_a_batch(lengths: list[int]) -> None:
    """The error says what they should be."""
    held = {"w": np.ones((1, 2, 2), np.float32), "r": np.ones((1, 2, 2), np.float32)}
    held["l"] = np.array(lengths, np.int32)
    node = helper.make_node("RNN", ["x", "w", "r", "", "l"], ["y"], hidden_size=2)
    with pytest.raises(ModelFileError, match="sequences of up to 3 steps"):
        from_onnx(model_of([node], [typed("x", (3, 2, 2))], ["y"], held))


@given(st.data())
@SAMPLE
def test_columns_to_image(data: st.DataObject) -> None:
    """Windows that overlap, with gaps and steps."""
    size, taps = 5, data.draw(st.tuples(*[st.integers(1, 2)] * 2))
    steps, gaps = (data.draw(st.tuples(*[st.integers(1, 2)] * 2)) for _ in "sd")
    pads = data.draw(st.tuples(*[st.integers(0, 1)] * 4))
    counts = [
        (size + pads[n] + pads[n + 2] - gaps[n] * (taps[n] - 1) - 1) // steps[n] + 1
        for n in range(2)
    ]
    x = drawn(data, 2, 3 * taps[0] * taps[1], counts[0] * counts[1])
    held = {"image": np.array([size, size]), "block": np.array(taps)}
    one("Col2Im", x, held, strides=list(steps), dilations=list(gaps), pads=list(pads))


@given(st.data(), st.sampled_from(["avg", "max"]))
@SAMPLE
def test_regions(data: st.DataObject, mode: str) -> None:
    """Regions that the model is given while it runs."""
    x, rng = drawn(data, 2, 2, 6, 5), np.random.default_rng(data.draw(st.integers(0, 100)))
    begins = rng.uniform(0, 4, (3, 2))
    regions = np.concatenate([begins, begins + rng.uniform(0.5, 4, (3, 2))], 1).astype(np.float32)
    node = helper.make_node(
        "RoiAlign", ["x", "r", "i"], ["y"], mode=mode, output_height=2, output_width=3,
        sampling_ratio=data.draw(st.integers(1, 2)), spatial_scale=0.75,
    )  # fmt: skip
    ports = [typed("x", x), typed("r", regions)]
    images = {"i": np.array([0, 1, 1])}
    check(model_of([node], ports, ["y"], images, 16), x=x, r=regions)


@given(st.data())
@SAMPLE
def test_deformed_convolution(data: st.DataObject) -> None:
    """Groups of channels and of offsets, a mask and a bias."""
    groups, moved = data.draw(st.sampled_from([1, 2])), data.draw(st.sampled_from([1, 2]))
    x, w = drawn(data, 1, 4, 5, 6), drawn(data, 4, 4 // groups, 2, 2)
    offsets = drawn(data, 1, moved * 8, 4, 5)
    names, held = ["x", "w", "o", "", ""], {"w": w}
    if data.draw(st.booleans()):
        held["b"], names[3] = drawn(data, 4), "b"
    if data.draw(st.booleans()):
        held["m"], names[4] = drawn(data, 1, moved * 4, 4, 5), "m"
    node = helper.make_node(
        "DeformConv", names, ["y"], group=groups, offset_group=moved, kernel_shape=[2, 2],
        pads=[0] * 4,
    )  # fmt: skip
    check(model_of([node], [typed("x", x), typed("o", offsets)], ["y"], held, 22), x=x, o=offsets)
