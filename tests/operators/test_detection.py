"""Operators that choose boxes: meaning, C and oracles agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

import microtir
from microtir.graph.ir import Array
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.rewrite.reference import execute
from microtir.writers.tflite import TfliteBuilder
from tests.frontend.models import refusal
from tests.support.litert import run_litert
from tests.support.seeds import seeds
from tests.support.tflm import run_tflm

Code = BuiltinOperator
F32, I32 = np.float32, np.int32


def close(got: Array, want: Array, what: object) -> None:
    """Integers are equal, floats are near."""
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=str(what))


def by_meaning(data: bytes, given: dict[str, Array]) -> list[Array]:
    """The outputs that the numpy meaning gives."""
    graph = microtir.frontend.from_tflite(data).graph
    assert graph is not None
    return list(execute(graph, given).values())


def by_c(data: bytes, given: dict[str, Array]) -> list[Array]:
    """The outputs of the C, under sanitizers."""
    artifact = microtir.build(microtir.frontend.from_tflite(data))
    return list(microtir.host.load(artifact, sanitize=True).run(given).values())


# --- NON_MAX_SUPPRESSION_V4 and V5 ---------------------------------------------------------------


def suppression(count: int, boxes: int, iou: float, score: float, sigma: float | None) -> bytes:
    """A model of one suppression; without a sigma it is of version 4."""
    builder = TfliteBuilder()
    x = builder.tensor("boxes", (boxes, 4), F32)
    s = builder.tensor("scores", (boxes,), F32)
    numbers: list[tuple[str, type, float]] = [("n", I32, count), ("i", F32, iou), ("t", F32, score)]
    results = [builder.tensor("chosen", (count,), I32)]
    if sigma is not None:
        numbers.append(("sigma", F32, sigma))
        results.append(builder.tensor("values", (count,), F32))
    results.append(builder.tensor("number", (), I32))
    constants = [builder.tensor(n, (), kind, np.array(v, kind)) for n, kind, v in numbers]
    v5 = sigma is not None
    code = Code.NON_MAX_SUPPRESSION_V5 if v5 else Code.NON_MAX_SUPPRESSION_V4
    builder.operator(code, [x, s, *constants], results)
    return builder.build([x, s], results)


def drawn_suppression(seed: int) -> tuple[bytes, dict[str, Array]]:
    """Boxes with corners in any order, some without area; scores that differ."""
    rng = np.random.default_rng([seed, 41])
    boxes = int(rng.integers(1, 30))
    corners = rng.uniform(0, 4, (boxes, 4)).astype(F32)
    if rng.random() < 0.5:
        corners[:, 2:] = corners[:, :2] + rng.uniform(0.2, 2, (boxes, 2)).astype(F32)
    if rng.random() < 0.3:
        corners[0, 2] = corners[0, 0]
    scores = rng.uniform(-0.2, 1, boxes).astype(F32)
    sigma = [None, 0.0, float(rng.uniform(0.1, 1))][int(rng.integers(3))]
    iou, least = float(F32(rng.uniform(0.05, 1))), float(F32(rng.uniform(-0.5, 0.5)))
    data = suppression(int(rng.integers(1, 20)), boxes, iou, least, sigma)
    return data, {"boxes": corners, "scores": scores}


@pytest.mark.tools
@pytest.mark.soak
def test_suppression_equals_litert() -> None:
    """Chosen boxes and their number are equal, scores lowered by a sigma are near."""
    for seed in seeds(100, 25):
        data, given = drawn_suppression(seed)
        want = run_litert(data, *given.values())
        for got, expected in zip(by_meaning(data, given), want, strict=True):
            close(got, expected, seed)


@pytest.mark.tools
@pytest.mark.soak
def test_suppression_in_c() -> None:
    """The C chooses as the meaning does, inside of its memory."""
    for seed in seeds(200, 4):
        data, given = drawn_suppression(seed)
        for got, want in zip(by_c(data, given), by_meaning(data, given), strict=True):
            close(got, want, seed)


def test_the_first_of_equal_scores_goes_first() -> None:
    """Which one LiteRT takes follows from its library's heap."""
    boxes = np.array([[i, 0, i + 1, 1] for i in range(4)], F32)
    given = {"boxes": boxes, "scores": np.array([0.5, 0.75, 0.5, 0.75], F32)}
    chosen, number = by_meaning(suppression(3, 4, 0.5, 0, None), given)
    assert (chosen.tolist(), int(number)) == ([1, 3, 0], 3)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((3, 4, 0.0, 0.5, None), "the overlap that removes a box is 0.0"),
        ((3, 4, float("inf"), 0.5, None), "finite numbers"),
    ],
)
def test_refusals_of_suppression(arguments: Any, text: str) -> None:
    """Thresholds that nothing could be chosen by."""
    assert text in refusal(suppression(*arguments))


# --- TFLite_Detection_PostProcess ----------------------------------------------------------------


NAMES = ("boxes", "scores", "anchors")
PLAIN = {
    "max_detections": 5,
    "max_classes_per_detection": 1,
    "nms_score_threshold": 0.25,
    "nms_iou_threshold": 0.5,
    "num_classes": 3,
    "y_scale": 10.0,
    "x_scale": 10.0,
    "h_scale": 5.0,
    "w_scale": 5.0,
}


def detection(
    options: dict[str, Any] | bytes,
    boxes: int,
    depth: int,
    columns: int,
    anchors: Array | None,
    *,
    says_shapes: bool = True,
) -> bytes:
    """A model of one post-processing; converters do not say the shapes of its results."""
    builder = TfliteBuilder()
    count = options["max_detections"] if isinstance(options, dict) else 5
    shapes = ((1, boxes, depth), (1, boxes, columns), (boxes, 4))
    given = [
        builder.tensor(name, shape, F32, data)
        for name, shape, data in zip(NAMES, shapes, (None, None, anchors), strict=True)
    ]
    named = (("places", (1, count, 4)), ("kinds", (1, count)), ("values", (1, count)))
    results = [
        builder.tensor(name, shape if says_shapes else (), F32)
        for name, shape in (*named, ("number", (1,)))
    ]
    packed = options if isinstance(options, bytes) else bytes(flexbuffers.Dumps(options))
    builder.custom_operator("TFLite_Detection_PostProcess", given, results, packed)
    return builder.build(given[: 2 if anchors is not None else 3], results)


def drawn_detection(seed: int) -> tuple[bytes, dict[str, Array]]:
    """Some overlapping boxes, some equal scores; both forms, with and without a background."""
    rng = np.random.default_rng([seed, 43])
    boxes, classes, background = int(rng.integers(1, 45)), int(rng.integers(1, 5)), seed % 2
    options: dict[str, Any] = {
        **PLAIN,
        "max_detections": int(rng.integers(1, 12)),
        "nms_score_threshold": float(F32(rng.uniform(0, 0.6))),
        "nms_iou_threshold": float(F32(rng.uniform(0.1, 1))),
        "num_classes": classes,
        "use_regular_nms": bool(rng.integers(2)),
    }
    if rng.random() < 0.7:
        options["detections_per_class"] = int(rng.integers(1, 10))
    depth = int(rng.integers(4, 6))
    anchors = rng.uniform(0.1, 1, (boxes, 4)).astype(F32)
    scores = rng.uniform(0, 1, (1, boxes, classes + background)).astype(F32)
    if rng.random() < 0.5:
        scores = np.rint(scores * 16).astype(F32) / F32(16)
    encoded = rng.normal(0, 2, (1, boxes, depth)).astype(F32)
    fixed = bool(rng.integers(2))
    data = detection(options, boxes, depth, classes + background, anchors if fixed else None)
    given = {"boxes": encoded, "scores": scores, "anchors": anchors}
    return data, dict(list(given.items())[: 2 if fixed else 3])


@pytest.mark.tools
@pytest.mark.soak
def test_detections_equal_tflite_micro() -> None:
    """Equal up to the last detection; behind it, tflite-micro leaves what lay in its arena."""
    for seed in seeds(300, 25):
        data, given = drawn_detection(seed)
        want = run_tflm(data, *given.values(), outputs=4, arena_bytes=1 << 22)
        got = by_meaning(data, given)
        number = int(want[3][0])
        assert int(got[3][0]) == number
        for mine, expected in zip(got[:3], want[:3], strict=True):
            close(mine[0, :number], expected[0, :number], seed)
            assert not mine[0, number:].any()


def test_results_without_shapes() -> None:
    """Results of which the file does not say the shapes have those of the attributes."""
    given = {"boxes": np.zeros((1, 6, 4), F32), "scores": np.ones((1, 6, 3), F32)}
    given["scores"][0, 2] = 2
    anchors = np.linspace(0.1, 1, 24, dtype=F32).reshape(6, 4)
    said, unsaid = (
        by_meaning(detection(PLAIN, 6, 4, 3, anchors, says_shapes=says), given)
        for says in (True, False)
    )
    for got, want in zip(unsaid, said, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.tools
@pytest.mark.soak
def test_detections_in_c() -> None:
    """The C gives what the meaning does, inside of its memory."""
    for seed in seeds(400, 6):
        data, given = drawn_detection(seed)
        for got, want in zip(by_c(data, given), by_meaning(data, given), strict=True):
            close(got, want, seed)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"max_classes_per_detection": 2}, "a detection has 2 classes"),
        ({"num_classes": 5}, "scores of 3 classes"),
        ({"nms_iou_threshold": 1.5}, "an overlap of 1.5"),
        ({"y_scale": 0.0}, "none of 0"),
        ({"h_scale": float("nan")}, "a finite number"),
        ({"x_scale": "wide"}, "x_scale"),
        ({"max_detections": 2.5}, "an integer"),
        ({"use_regular_nms": True, "detections_per_class": 0}, "0 detections"),
    ],
)
def test_refusals_of_detection(changed: dict[str, Any], text: str) -> None:
    """What tflite-micro refuses while it runs, and where it would write outside of its outputs."""
    options = {**PLAIN, **changed}
    packed = bytes(flexbuffers.Dumps(options))
    assert text in refusal(detection(packed, 4, 4, 3, None))


def test_damaged_options() -> None:
    """Options cut short or changed give a diagnostic or another model, and no traceback."""
    packed = bytes(flexbuffers.Dumps(PLAIN))
    rng = np.random.default_rng(5)
    damaged = [packed[:size] for size in range(0, len(packed), 7)]
    for _ in range(100):
        other = bytearray(packed)
        other[int(rng.integers(len(packed)))] = int(rng.integers(256))
        damaged.append(bytes(other))
    for options in damaged:
        microtir.frontend.check(detection(options, 4, 4, 3, None))
    assert "not a map" in refusal(detection(b"", 4, 4, 3, None))
