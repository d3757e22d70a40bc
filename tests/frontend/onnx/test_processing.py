"""Steps before and behind a model, against what numpy and onnxruntime make of the same numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import microtir
from microtir import CompilationConfig, host
from microtir.config import microcontroller
from microtir.errors import ConfigError
from microtir.frontend import from_onnx, from_tflite
from microtir.graph.ir import Array, Graph
from microtir.module.ir_module import IRModule
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.conversion.definition import Quantize, Tabulated
from microtir.rewrite.reference import execute
from microtir.rewrite.requests.requested import requested_graph
from microtir.writers.tflite import TfliteBuilder
from tests.support.command import INT8
from tests.support.onnx_models import model_of, run_onnxruntime, typed
from tests.support.pages import follow, shown

RNG = np.random.default_rng(5)
PIXELS = RNG.integers(0, 256, (1, 8, 8, 1)).astype(np.uint8)


def digits() -> Graph:
    """The example in int8: pixels of the scale 1/255, and shares."""
    graph = from_tflite(INT8).graph
    assert graph is not None
    return graph


def asked(graph: Graph, **options: str) -> Graph:
    """The graph with the steps; config and graph check them."""
    return requested_graph(graph, microcontroller().with_(**options))


def output(graph: Graph, x: Array) -> Array:
    """The first output for the only input."""
    [name] = (tensor.name for tensor in graph.arguments)
    return execute(graph, {name: x})[graph.results[0].name]


def image_model() -> bytes:
    """An image (N, C, H, W) of three channels, and two shares."""
    weights = (RNG.standard_normal((2, 3, 4, 4)) / 4).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["c"]),
        helper.make_node("Flatten", ["c"], ["y"]),
    ]
    return model_of(nodes, [typed("image", (1, 3, 4, 4))], ["y"], {"w": weights})


def test_pixels_are_what_an_int8_model_stores_less_128() -> None:
    """Numbers that a shift by 128 gives take no table, and the sensor's type says its scale."""
    plain = digits()
    graph = asked(plain, prepend="uint8,over:255")
    [sensor] = graph.arguments
    assert sensor.type.quant.scale == plain.arguments[0].type.quant.scale
    assert [type(node.op) for node in graph.nodes[:1]] == [Quantize]
    stored = (PIXELS.astype(np.int32) - 128).astype(np.int8)
    np.testing.assert_array_equal(output(graph, PIXELS), output(plain, stored))


def test_other_numbers_are_a_table() -> None:
    """All steps of a pixel become one look-up, which rounds once."""
    plain = digits()
    graph = asked(plain, prepend="uint8,minus:16,over:219")
    assert [type(node.op) for node in graph.nodes[:2]] == [Quantize, Tabulated]
    x = plain.arguments[0].type
    real = (
        (PIXELS.astype(np.float32) - np.float32(16)) / np.float32(219) / np.float32(x.quant.scale)
    )
    rounded = np.sign(real) * np.floor(np.abs(real) + np.float32(0.5)) + x.quant.zero_point
    stored = rounded.clip(-128, 127).astype(np.int8)
    np.testing.assert_array_equal(output(graph, PIXELS), output(plain, stored))


def test_channels_of_a_camera_and_shares_of_classes() -> None:
    """Pixels as a camera gives them, means and deviations of channels, and a softmax."""
    model = image_model()
    graph = from_onnx(model).graph
    assert graph is not None
    before = "image=uint8,over:255,minus:0.485:0.456:0.406,over:0.229:0.224:0.225"
    mean, deviation = (
        np.array(n, np.float32) for n in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    )
    config = microcontroller().with_(prepend=f"{before},nhwc", append="softmax")
    artifact = microtir.build(IRModule(graph=graph), config)
    camera = RNG.integers(0, 256, (1, 4, 4, 3)).astype(np.uint8)
    image = ((camera / np.float32(255) - mean) / deviation).astype(np.float32)
    [scores] = run_onnxruntime(model, {"image": np.ascontiguousarray(image.transpose(0, 3, 1, 2))})
    shares = np.exp(scores - scores.max())
    got = host.load(artifact, sanitize=True).run({"image": camera})["y"]
    np.testing.assert_allclose(got, shares / shares.sum(), rtol=1e-5)
    # Without the last step the model's own order of axes stays, and channels are the second one.
    own = asked(graph, prepend=before)
    given = np.ascontiguousarray(camera.transpose(0, 3, 1, 2))
    np.testing.assert_allclose(output(own, given), scores, rtol=1e-4, atol=1e-5)


def test_a_larger_image_is_made_smaller() -> None:
    """Of an image of twice the size each pixel is the mean of four, halves away from zero."""
    plain = digits()
    graph = asked(plain, prepend="uint8,resize:16x16,over:255")
    assert graph.arguments[0].shape == (1, 16, 16, 1)
    large = RNG.integers(0, 256, (1, 16, 16, 1)).astype(np.uint8)
    sums = (large.astype(np.int32) - 128).reshape(1, 8, 2, 8, 2, 1).sum((2, 4))
    stored = (np.sign(sums) * ((np.abs(sums) + 2) // 4)).astype(np.int8)
    np.testing.assert_array_equal(output(graph, large), output(plain, stored))


def test_samples_are_weighed() -> None:
    """A window is periodic, and a sample of 16 bits is a number of its own."""
    node = helper.make_node("Neg", ["x"], ["y"])
    graph = from_onnx(model_of([node], [typed("x", np.zeros((1, 8), np.float32))], ["y"])).graph
    assert graph is not None
    samples = RNG.integers(-32768, 32768, (1, 8)).astype(np.int16)
    angles = 2 * np.pi * np.arange(8) / 8
    for name, weights in (("hann", 0.5 - 0.5 * np.cos(angles)),
                          ("hamming", 25 / 46 - 21 / 46 * np.cos(angles))):  # fmt: skip
        got = output(asked(graph, prepend=f"int16,window:{name},times:0.5"), samples)
        np.testing.assert_allclose(got, -samples * weights / 2, rtol=1e-5, atol=1e-2)


def test_a_spectrum_in_bands() -> None:
    """Samples of 16 bits become logarithms of mel bands, as numpy's transform and loops say."""
    node = helper.make_node("Neg", ["x"], ["y"])
    graph = from_onnx(model_of([node], [typed("x", (1, 10))], ["y"])).graph
    assert graph is not None
    steps = "int16,times:3.0517578125e-05,window:hann,power:120:128,mel:8000:100:3500,plus:1e-3,log"
    front = asked(graph, prepend=steps)
    assert front.arguments[0].shape == (1, 120)
    samples = RNG.integers(-20000, 20000, (1, 120)).astype(np.int16)
    real = samples[0] / 32768 * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(120) / 120))
    spectrum = np.abs(np.fft.rfft(real, 128)) ** 2
    low, high = (1127 * np.log(1 + f / 700) for f in (100, 3500))
    bands = []
    for band in range(10):
        left, top, right = (low + (high - low) * (band + n) / 11 for n in range(3))
        total = 0.0
        for k in range(1, 65):
            place = 1127 * np.log(1 + k * 4000 / 64 / 700)
            share = min((place - left) / (top - left), (right - place) / (right - top))
            total += max(0.0, share) * spectrum[k]
        bands.append(-np.log(total + 1e-3))
    np.testing.assert_allclose(output(front, samples)[0], bands, rtol=1e-4, atol=1e-4)
    plain = asked(graph, prepend="power:16:18,sqrt")
    assert plain.arguments[0].shape == (1, 16)


def test_results_are_named_after_outputs() -> None:
    """The largest two with their places, and real numbers of stored ones."""
    plain = digits()
    stored = (PIXELS.astype(np.int32) - 128).astype(np.int8)
    [[shares]] = (execute(plain, {"image": stored}).values(),)
    best = execute(asked(plain, append="dequantize,topk:2"), {"image": stored})
    quant = plain.results[0].type.quant
    real = (np.sort(shares.astype(np.float32))[:, ::-1] - quant.zero_point) * np.float32(
        quant.scale
    )
    np.testing.assert_array_equal(best["probabilities"], real[:, :2])
    np.testing.assert_array_equal(best["probabilities_places"][0, :1], shares[0].argmax())
    assert output(asked(plain, append="argmax"), stored) == shares[0].argmax()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"prepend": "x=uint8"}, "nothing is called 'x'"),
        ({"prepend": "int8,minus:-128,over:255"}, "the steps do not change the type or shape of"),
        ({"prepend": "uint8,minus:1:2,over:255"}, "got 2 numbers for a tensor of the shape"),
        ({"append": "topk:11"}, "the 11 largest of 10 values"),
        ({"append": "y=argmax"}, "nothing is called 'y'"),
        ({"prepend": "power:16"}, "gives 9 frequencies instead of 1"),
        ({"prepend": "image=uint8;uint8"}, "'image' occurs twice"),
    ],
)
def test_refused(options: dict[str, str], text: str) -> None:
    """What a model has no place for is named, with what is legal."""
    with pytest.raises(ConfigError) as caught:
        asked(digits(), **options)
    assert text in str(caught.value)
    assert caught.value.where in options


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("fft", "is not a step"), ("over:0", "divides by 0"), ("over", "needs finite numbers"),
        ("minus:nan", "needs finite numbers"), ("minus:x", "is not a number"),
        ("nhwc,over:2", "after 'nhwc'"), ("over:2,uint8", "the sensor's type comes first"),
        ("resize:3", "height x width"), ("window:box", "hann or hamming"),
        ("power:17", "two lengths"), ("power:16:8", "is even"), ("mel:8000", "without"),
        ("power:16,mel:8:2", "needs the sample rate"), ("resize:2x2,power:4", "images"),
        ("uint8:3", "takes no numbers"), ("uint8;int8", "two parts without a name"),
    ],
)  # fmt: skip
def test_malformed(text: str, problem: str) -> None:
    """A text is refused where the configuration is made."""
    with pytest.raises(ConfigError) as caught:
        CompilationConfig(targets="c", prepend=text)
    assert problem in str(caught.value)


@pytest.mark.tools
def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of the page work, and show the sensor's type and the places of the largest."""
    monkeypatch.chdir(tmp_path)
    printed = follow("processing.md", tmp_path)
    assert "image: uint8 1x8x8x1" in printed and "probabilities: int32 1" in printed
    assert "probabilities_places" in printed
    assert printed.endswith("\n".join([*shown("processing.md"), ""]))


def detector(scores: tuple[int, ...]) -> bytes:
    """Boxes and scores, each of which is what was given."""
    names = {"boxes": (1, 6, 4), "scores": scores}
    nodes = [helper.make_node("Identity", [f"{name}_in"], [name]) for name in names]
    return model_of(nodes, [typed(f"{n}_in", s) for n, s in names.items()], list(names))


def best_boxes(boxes: Array, scores: Array, most: int, form: int) -> tuple[Array, ...]:
    """What onnxruntime keeps of boxes (6, 4) and scores (C, 6), in order of their scores."""
    limits = {"most": np.array([most]), "iou": np.array([0.4], np.float32),
              "least": np.array([0.25], np.float32)}  # fmt: skip
    node = helper.make_node("NonMaxSuppression", ["b", "s", *limits], ["y"], center_point_box=form)
    inputs = [typed("b", (1, *boxes.shape)), typed("s", (1, *scores.shape))]
    output = helper.make_tensor_value_info("y", onnx.TensorProto.INT64, None)
    model = model_of([node], inputs, [output], limits)
    [rows] = run_onnxruntime(model, {"b": boxes[None], "s": scores[None]})
    values = scores[rows[:, 1], rows[:, 2]]
    order = np.argsort(-values, kind="stable")[:most]
    return boxes[rows[order, 2]], values[order], rows[order, 1]


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize(("classes", "is_last"), [(3, False), (3, True), (1, False)])
def test_best_boxes(classes: int, is_last: bool, form: int) -> None:
    """Classes choose by themselves; the best of all are kept, and zeros are behind them."""
    shape = (1, 6, classes) if is_last else (1, classes, 6) if classes > 1 else (1, 6)
    graph = from_onnx(detector(shape)).graph
    assert graph is not None
    steps = f"scores=over:8;boxes=times:2,nms:scores:0.4:0.25:4{':centres' if form else ''}"
    chosen = asked(graph, append=steps)
    names = ["boxes", "boxes_classes", "boxes_count", "scores"]
    assert [tensor.name for tensor in chosen.results] == names
    for seed in range(5):
        rng = np.random.default_rng([seed, classes])
        boxes = rng.integers(0, 6, (1, 6, 4)).astype(np.float32)
        scores = rng.integers(0, 9, shape).astype(np.float32)
        got = execute(chosen, {"boxes_in": boxes, "scores_in": scores})
        by_class = scores[0].T if is_last else scores.reshape(classes, 6)
        want = best_boxes(2 * boxes[0], by_class / 8, 4, form)
        count = int(got["boxes_count"][0])
        for name, wanted in zip(("boxes", "scores", "boxes_classes"), want, strict=True):
            np.testing.assert_array_equal(got[name][:count], wanted)
            assert not got[name][count:].any()


def test_best_boxes_of_int8_in_c() -> None:
    """A model of TFLite whose outputs are int8 gives real boxes and scores."""
    builder = TfliteBuilder()
    shapes = {"boxes": (1, 6, 4), "scores": (1, 6, 2)}
    scales = {"boxes": (0.25, -10), "scores": (1 / 256, -128)}
    given, made = (
        {n: builder.tensor(n + end, s, np.int8, None, *scales[n]) for n, s in shapes.items()}
        for end in ("_in", "")
    )
    for name, x in given.items():
        builder.operator(BuiltinOperator.MAXIMUM, [x, x], [made[name]])
    data = builder.build(list(given.values()), list(made.values()))
    config = microcontroller().with_(append="boxes=nms:scores:0.4:0.25:3")
    loaded = host.load(microtir.build(from_tflite(data), config), sanitize=True)
    rng = np.random.default_rng(11)
    stored = {f"{n}_in": rng.integers(-128, 127, s).astype(np.int8) for n, s in shapes.items()}
    got = loaded.run(stored)
    boxes = (stored["boxes_in"][0].astype(np.float32) + 10) * np.float32(0.25)
    scores = (stored["scores_in"][0].astype(np.float32) + 128) * np.float32(1 / 256)
    want = best_boxes(boxes, np.ascontiguousarray(scores.T), 3, 0)
    count = int(got["boxes_count"][0])
    assert count == len(want[1]) > 0
    for name, wanted in zip(("boxes", "scores", "boxes_classes"), want, strict=True):
        np.testing.assert_array_equal(got[name][:count], wanted)


@pytest.mark.parametrize(
    ("append", "text"),
    [
        ("boxes=nms:score:0.5:0.5:3", "no output other than 'boxes' is called 'score'"),
        ("scores=nms:boxes:0.5:0.5:3", "is for boxes, and the shape is (1, 6, 6)"),
        ("boxes=nms:scores:0.5:0.5:3", "has scores of the shape (1, 6, 6) for 6 boxes"),
        ("boxes=nms:scores:0.5:0.5:3,over:2", "has a step after 'nms'"),
        ("boxes=nms:scores:1.5:0.5:3", "needs four values"),
        ("boxes=nms:0.5:0.5:3", "needs four values"),
        ("boxes=nms:3", "needs four values"),
        ("boxes=nms:corners", "needs four values"),
        ("boxes=nms", "needs four values"),
    ],
)
def test_boxes_that_are_not_chosen(append: str, text: str) -> None:
    """What is missing or has no meaning is said."""
    graph = from_onnx(detector((1, 6, 6))).graph
    assert graph is not None
    with pytest.raises(ConfigError) as caught:
        asked(graph, append=append)
    assert text in str(caught.value)
