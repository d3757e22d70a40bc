"""The drawing: where boxes lie, and what is written on them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from microtir.report.data import MainCall
from microtir.report.geometry import MapBox, draw, ticks
from tests.support.report_facts import buffer, pool, report, steady


@pytest.fixture
def boxes() -> dict[str, list[MapBox]]:
    """Return the boxes of the hand-made pool by buffer."""
    found: dict[str, list[MapBox]] = {}
    for box in draw(report(), pool()).boxes:
        found.setdefault(box.buffer, []).append(box)
    return found


def test_boxes_are_in_proportion(boxes: dict[str, list[MapBox]]) -> None:
    """Two steps are twice as wide as one; bytes are as high as they are many, 0 at the bottom."""
    (ring,), (scratch,) = boxes["ring_0"], boxes["layer1_scratch"]
    assert float(ring.width) == pytest.approx(2 * float(scratch.width), abs=0.2)
    assert float(ring.height) == pytest.approx(1.5 * float(scratch.height), abs=0.2)
    bottom = float(draw(report(), pool()).bottom)
    assert float(ring.y) + float(ring.height) == pytest.approx(bottom, abs=0.2)
    assert float(scratch.y) == pytest.approx(float(draw(report(), pool()).top), abs=0.2)


def test_what_grows_or_shrinks_is_no_rectangle(boxes: dict[str, list[MapBox]]) -> None:
    """In a nest of one step a tensor that is filled row by row has a slope."""
    whole, dying = boxes["activation_1"]
    assert (whole.points, whole.kind) == ("", "activation")
    corners = [tuple(map(float, corner.split(","))) for corner in dying.points.split()]
    left, right = corners[0][0], corners[1][0]
    assert [x for x, _ in corners] == [left, right, right, left]
    assert corners[1][1] - corners[2][1] == pytest.approx(-38, abs=0.2)  # 10 of 100 bytes
    assert corners[0][1] - corners[3][1] == pytest.approx(-152, abs=0.2)


def test_a_part_of_a_buffer_is_marked(boxes: dict[str, list[MapBox]]) -> None:
    """A box with less than the buffer's bytes is of the kind `partial`, and hovering says so."""
    half = replace(pool().buffers[0], size=60)
    changed = replace(pool(), buffers=(half,))
    (box,) = draw(replace(report(), pools=(changed,)), changed).boxes
    assert box.kind == "ring partial"
    assert "at most 30 bytes in use in layer 0 to 1" in box.tip
    assert boxes["ring_0"][0].kind == "ring"


def test_hovering_says_what_a_buffer_is(boxes: dict[str, list[MapBox]]) -> None:
    """Name, kind, tensor, size, offset, life and part of the peak."""
    assert boxes["ring_0"][0].tip.splitlines() == [
        "ring_0: ring",
        "ring_0 tensor 1x30 int8",
        "30 bytes at offset 0",
        "made in layer 0 CONV_2D",
        "last used in layer 1 RELU",
        "30 bytes of the peak",
    ]


def test_names_stand_where_no_other_buffer_lies() -> None:
    """Where two buffers share bytes there are stripes, and the names of both lie beside them."""
    kind = pool().buffers[1].kind
    early = buffer("early", kind, 0, steady(0, 2, 0, 100))
    late = buffer("late", kind, 0, steady(2, 3, 0, 60))
    drawing = draw(report(), replace(pool(), buffers=(early, late)))
    columns = [float(label.column.x) for label in drawing.labels]
    first, second = drawing.boxes
    assert (first.label, second.label) == ("early", "late")
    assert columns[0] < float(first.label_x) < columns[2]
    assert columns[3] < float(second.label_x)
    (stripes,) = drawing.shared
    assert stripes.startswith(f"M{columns[2]:.1f}".removesuffix(".0"))
    assert draw(report(), pool()).shared == ()


def test_the_peak_is_marked() -> None:
    """The column of the peak has its bytes above it."""
    peak = draw(report(), pool()).peak
    steps = draw(report(), pool()).labels
    assert peak.label == "peak 90"
    assert peak.x == steps[1].column.x


def test_lines_and_their_words() -> None:
    """Size, limit and lower bound from the top down, their words never over each other."""
    lines = draw(report(), pool()).lines
    assert [line.kind for line in lines] == ["size", "limit exceeded", "bound"]
    places = [float(line.text_y) for line in lines]
    assert all(b - a >= 12.9 for a, b in pairwise(places))
    far = replace(report(), limits=(replace(report().limits[0], allowed=10**6),))
    assert [line.kind for line in draw(far, pool()).lines] == ["size", "bound"]


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (1, [0, 1]),
        (6, [0, 1, 2, 3, 4, 5, 6]),
        (1200, [0, 200, 400, 600, 800, 1000, 1200]),
        (16000, [0, 5000, 10000, 15000]),
        (13, [0, 5, 10]),
    ],
)
def test_ticks_are_round(most: int, expected: list[int]) -> None:
    """A few offsets of 1, 2 or 5 times a power of ten."""
    assert ticks(most) == expected


def test_many_steps_are_wider_than_a_screen() -> None:
    """A model of 500 layers stays readable: columns keep a least width."""
    steps = tuple(MainCall(n, str(n), f"layer{n}", "CONV_2D", f"net/{n}") for n in range(500))
    drawing = draw(replace(report(), steps=steps), pool())
    assert float(drawing.width) > 500 * 16
    assert len(drawing.labels) == 500
    assert all(len(box.label) <= 12 for box in drawing.boxes)


def test_a_long_label_has_room() -> None:
    """The drawing is as high as the longest name of a layer reaches down."""
    usual = report()
    *others, last = usual.steps
    long = replace(last, operator="RESIZE_NEAREST_NEIGHBOR", label="115")
    high = draw(replace(usual, steps=(*others, long)), pool())
    assert float(high.height) > float(draw(usual, pool()).height)
    label, *_ = (one for one in high.labels if one.text == "115 resize_nearest_neighbor")
    assert float(high.height) >= float(label.y) + len(label.text) * 6 * 0.7
    assert float(label.column.y) + float(label.column.height) == pytest.approx(float(high.height))
