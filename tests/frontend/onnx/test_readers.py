"""Operators with random attributes against onnxruntime: where readers resolve something."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper

from microtir.errors import MicrotirError
from microtir.frontend import from_onnx
from microtir.rewrite.reference import execute
from tests.support.onnx_models import (
    Array,
    model_of,
    run_onnxruntime,
    typed,
    with_inferred_outputs,
)

pytestmark = pytest.mark.tools

SAMPLE = settings(max_examples=60, deadline=None)


def drawn(data: st.DataObject, *shape: int) -> Array:
    """Return values of a seed."""
    rng = np.random.default_rng(data.draw(st.integers(0, 1000), "seed"))
    return rng.standard_normal(shape).astype(np.float32)


def check(model: bytes, **inputs: Array) -> None:
    """The graph computes what onnxruntime does, or both refuse."""
    try:
        expected = run_onnxruntime(with_inferred_outputs(model), inputs)
    except Exception:  # noqa: BLE001  # of several kinds, for models that are not legal
        assume(False)
    graph = from_onnx(model).graph
    assert graph is not None
    for got, want in zip(execute(graph, inputs).values(), expected, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def window(data: st.DataObject, rank: int, *, dilated: bool = True) -> dict[str, Any]:
    """Return attributes of a window."""
    axes = st.tuples(*[st.integers(1, 3)] * rank)
    attributes: dict[str, Any] = {"kernel_shape": list(data.draw(axes, "taps"))}
    if data.draw(st.booleans()):
        attributes["strides"] = list(data.draw(axes, "strides"))
    if dilated and data.draw(st.booleans()):
        attributes["dilations"] = list(data.draw(st.tuples(*[st.integers(1, 2)] * rank)))
    automatic = data.draw(st.sampled_from(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    if automatic == "NOTSET":
        most = min(attributes["kernel_shape"]) - 1
        sides = st.tuples(*[st.integers(0, most)] * (2 * rank))
        attributes["pads"] = list(data.draw(sides, "pads"))
    else:
        attributes["auto_pad"] = automatic
    return attributes


@given(st.data())
@SAMPLE
def test_convolution(data: st.DataObject) -> None:
    """Lines and images, in groups, with every way to pad."""
    rank, groups = data.draw(st.integers(1, 2)), data.draw(st.sampled_from([1, 2, 4]))
    attributes = window(data, rank)
    weights = drawn(data, 4, 4 // groups, *attributes["kernel_shape"])
    x = drawn(data, 1, 4, *data.draw(st.tuples(*[st.integers(5, 8)] * rank)))
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], group=groups, **attributes)
    constants = {"w": weights, "b": drawn(data, 4)}
    check(model_of([node], [typed("x", x)], ["y"], constants), x=x)


@given(st.data())
@SAMPLE
def test_transposed_convolution(data: st.DataObject) -> None:
    """Lines, images and volumes, in groups, with every way to say how large the output is."""
    rank, groups = data.draw(st.integers(1, 3)), data.draw(st.sampled_from([1, 2]))
    attributes = window(data, rank)
    # Of windows smaller than their stride onnxruntime makes another size than ONNX says.
    reaches = min(attributes["kernel_shape"]) >= max(attributes.get("strides", [1]))
    assume("auto_pad" not in attributes or (attributes["auto_pad"] != "VALID" and reaches))
    weights = drawn(data, 4, 3, *attributes["kernel_shape"])
    x = drawn(data, 1, 4, *data.draw(st.tuples(*[st.integers(2, 5)] * rank)))
    if "auto_pad" in attributes:
        attributes.pop("dilations", None)
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], group=groups, **attributes)
    check(model_of([node], [typed("x", x)], ["y"], {"w": weights}), x=x)


@given(st.data(), st.sampled_from(["MaxPool", "AveragePool"]))
@SAMPLE
def test_pools(data: st.DataObject, operator: str) -> None:
    """Borders that count and that do not, and outputs rounded up."""
    rank = data.draw(st.integers(1, 2))
    attributes = window(data, rank, dilated=False)
    attributes["ceil_mode"] = data.draw(st.integers(0, 1))
    if operator == "AveragePool":
        attributes["count_include_pad"] = data.draw(st.integers(0, 1))
        # Between windows that are smaller than their stride onnxruntime begins at the second
        # element of an axis there, which it does in no other operator.
        strides = attributes.get("strides", [1] * rank)
        pairs = zip(attributes["kernel_shape"], strides, strict=True)
        assume(attributes.get("auto_pad") != "SAME_UPPER" or all(a >= b for a, b in pairs))
    x = drawn(data, 1, 3, *data.draw(st.tuples(*[st.integers(4, 8)] * rank)))
    node = helper.make_node(operator, ["x"], ["y"], **attributes)
    check(model_of([node], [typed("x", x)], ["y"]), x=x)


@given(st.data())
@SAMPLE
def test_slices(data: st.DataObject) -> None:
    """Starts and ends outside of the axis, and steps backwards."""
    x = drawn(data, 3, 5, 4)
    count = data.draw(st.integers(1, 3))
    axes = data.draw(st.permutations([0, 1, -1]))[:count]
    ends = [*range(-7, 8), 1 << 40, -(1 << 40)]
    starts, stops = (
        data.draw(st.lists(st.sampled_from(ends), min_size=count, max_size=count)) for _ in "ab"
    )
    steps = [data.draw(st.sampled_from([-2, -1, 1, 2])) for _ in axes]
    names = ("starts", "stops", "axes", "steps")
    constants = {
        name: np.array(values, np.int64)
        for name, values in zip(names, (starts, stops, axes, steps), strict=True)
    }
    model = model_of(
        [helper.make_node("Slice", ["x", *names], ["y"])], [typed("x", x)], ["y"], constants
    )
    (expected,) = run_onnxruntime(with_inferred_outputs(model), {"x": x})
    if expected.size:
        check(model, x=x)


def test_a_slice_of_one_element() -> None:
    """A slice keeps its axes, though the graph's operator can leave them out."""
    x = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    constants = {"starts": np.array([1, 2]), "stops": np.array([2, 3]), "axes": np.array([1, 2])}
    node = helper.make_node("Slice", ["x", *constants], ["y"])
    check(model_of([node], [typed("x", x)], ["y"], constants), x=x)


@given(st.data(), st.sampled_from(["constant", "reflect", "edge"]))
@SAMPLE
def test_pads(data: st.DataObject, mode: str) -> None:
    """Numbers below 0 cut off."""
    x = drawn(data, 2, 4, 5)
    pads = np.array([data.draw(st.integers(-1, 2)) for _ in range(6)], np.int64)
    assume(min(x.shape + pads[:3].clip(max=0) + pads[3:].clip(max=0)) > 0)
    assume(mode == "constant" or pads.min() >= 0)
    assume(mode != "reflect" or max(pads[0], pads[3]) < 2)
    node = helper.make_node("Pad", ["x", "pads", "value"], ["y"], mode=mode)
    constants = {"pads": pads, "value": np.float32(1.5)}
    check(model_of([node], [typed("x", x)], ["y"], constants), x=x)


@given(st.data())
@SAMPLE
def test_gemm(data: st.DataObject) -> None:
    """Every transpose, factors, and a C of any shape that broadcasts, constant or computed."""
    m, k, n = (data.draw(st.integers(1, 4)) for _ in "mkn")
    left, right = data.draw(st.booleans()), data.draw(st.booleans())
    a, b = drawn(data, *((k, m) if left else (m, k))), drawn(data, *((n, k) if right else (k, n)))
    c = drawn(data, *data.draw(st.sampled_from([(), (1,), (n,), (1, n), (m, 1), (m, n)])))
    held = data.draw(st.sampled_from([("b", "c"), ("b",), ("c",), ()]))
    node = helper.make_node(
        "Gemm", ["a", "b", "c"], ["y"], transA=int(left), transB=int(right),
        alpha=data.draw(st.sampled_from([1.0, 0.5])), beta=data.draw(st.sampled_from([1.0, 2.0])),
    )  # fmt: skip
    arrays = {"a": a, "b": b, "c": c}
    constants = {name: arrays[name] for name in held}
    inputs = {name: array for name, array in arrays.items() if name not in held}
    ports = [typed(name, array) for name, array in inputs.items()]
    check(model_of([node], ports, ["y"], constants), **inputs)


def test_gemm_with_a_column() -> None:
    """A C of one column is added to each column, also if it has as many numbers as a row."""
    square, column = np.eye(2, dtype=np.float32), np.array([[1], [2]], np.float32)
    node = helper.make_node("Gemm", ["a", "b", "c"], ["y"])
    constants = {"b": square, "c": column}
    check(model_of([node], [typed("a", square)], ["y"], constants), a=square)


@pytest.mark.parametrize(
    ("shape", "wanted", "allowzero", "expected"),
    [
        ((2, 3, 4), (0, -1), 0, (2, 12)),
        ((2, 3, 4), (4, 0, 2), 0, (4, 3, 2)),
        ((2, 3, 4), (-1,), 1, (24,)),
    ],
)
def test_reshape(
    shape: tuple[int, ...], wanted: tuple[int, ...], allowzero: int, expected: tuple[int, ...]
) -> None:
    """0 keeps an extent unless it is allowed, -1 takes the rest."""
    node = helper.make_node("Reshape", ["x", "shape"], ["y"], allowzero=allowzero)
    constants = {"shape": np.array(wanted, np.int64)}
    graph = from_onnx(model_of([node], [typed("x", shape)], ["y"], constants)).graph
    assert graph is not None
    assert graph.outputs[0].shape == expected


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (helper.make_node("Dropout", ["x", "", "train"], ["y"]), "training mode"),
        (helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], pads=[-1] * 4), "pads"),
        (helper.make_node("RandomNormalLike", ["x"], ["y"]), "the same result every time"),
        (helper.make_node("Softmax", ["x"], ["y"], axis=9), "axis 9"),
        (helper.make_node("Gelu", ["x"], ["y"], kind=1), "attribute: kind"),
    ],
)
def test_refusals(node: Any, words: str) -> None:
    """What is not done is refused by name."""
    model = model_of([node], [typed("x", (1, 2, 4, 4))], ["y"], {"train": np.array(True)})
    with pytest.raises(MicrotirError) as caught:
        from_onnx(model)
    assert words in str(caught.value)


def test_what_holds_nothing_expands_to_nothing() -> None:
    """An extent of 0 stays one, and as an output it is refused."""
    node = helper.make_node("Expand", ["x", "shape"], ["y"])
    constants = {"shape": np.array([2, 0, 3], np.int64)}
    model = model_of([node], [typed("x", np.zeros((0, 3), np.float32))], ["y"], constants)
    with pytest.raises(MicrotirError, match="which has no elements"):
        from_onnx(model)
