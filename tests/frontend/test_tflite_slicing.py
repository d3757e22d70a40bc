from __future__ import annotations

from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import microtir
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.movement.definition import StridedSlice
from microtir.operators.movement.tflite import StridedSliceOptions
from microtir.rewrite.reference import execute
from tests.frontend.models import Value, ints, model, read, read_node, refusal

Entry: TypeAlias = "slice | int | EllipsisType | None"


def mask(entries: tuple[Entry, ...], wanted: Any) -> int:
    """Bit i is set where `wanted` says yes to entry i."""
    return sum(1 << i for i, entry in enumerate(entries) if wanted(entry))


def index_model(
    shape: tuple[int, ...], entries: tuple[Entry, ...], result: tuple[int, ...]
) -> tuple[list[Value | None], Value, StridedSliceOptions]:
    """The STRIDED_SLICE that means numpy's `data[entries]`."""
    begins, ends, strides = [], [], []
    for entry in entries:
        if isinstance(entry, slice):
            begins.append(99 if entry.start is None else entry.start)
            ends.append(-99 if entry.stop is None else entry.stop)
            strides.append(1 if entry.step is None else entry.step)
        else:
            begins.append(entry if isinstance(entry, int) else 42)
            ends.append(-42)
            strides.append(1)
    options = StridedSliceOptions(
        begin_mask=mask(entries, lambda e: isinstance(e, slice) and e.start is None),
        end_mask=mask(entries, lambda e: isinstance(e, slice) and e.stop is None),
        ellipsis_mask=mask(entries, lambda e: e is ...),
        new_axis_mask=mask(entries, lambda e: e is None),
        shrink_axis_mask=mask(entries, lambda e: isinstance(e, int)),
    )
    inputs: list[Value | None] = [Value(shape), ints(*begins), ints(*ends), ints(*strides)]
    return inputs, Value(result), options


def take(op: StridedSlice, data: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """What the operator of the graph takes, with every input axis kept."""
    for axis, (begin, stride, extent) in enumerate(
        zip(op.begin, op.strides, op.extent, strict=True)
    ):
        data = data.take([begin + i * stride for i in range(extent)], axis)
    return data


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[Entry, ...]]:
    """A shape and an index of it that takes something."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    spoken_of = draw(st.integers(0, len(shape)))
    first = draw(st.integers(0, spoken_of))
    entries: list[Entry] = []
    ellipsis = draw(st.booleans())
    for i in range(spoken_of):
        # After an ellipsis, entries speak of the last axes.
        axis = i if i < first or not ellipsis else len(shape) - spoken_of + i
        if ellipsis and i == first:
            entries.append(...)
        if draw(st.integers(0, 3)) == 0 and len(shape) + entries.count(None) < 6:
            entries.append(None)
        if draw(st.integers(0, 2)) == 0:
            entries.append(draw(st.integers(-shape[axis], shape[axis] - 1)))
        else:
            entries.append(draw(st.slices(shape[axis])))
    return shape, tuple(entries)


@given(case=cases())
@settings(max_examples=150)
def test_masks_mean_what_numpy_means(case: tuple[tuple[int, ...], tuple[Entry, ...]]) -> None:
    """Any mixture of ranges, indices, new axes and an ellipsis takes numpy's elements."""
    shape, entries = case
    data = np.arange(np.prod(shape)).reshape(shape)
    expected = data[entries]
    inputs, output, options = index_model(shape, entries, expected.shape)
    if not entries or expected.size == 0:
        assert expected.size or "select nothing of" in refusal(
            model(BuiltinOperator.STRIDED_SLICE, inputs, Value((1,)), options)
        )
        return
    node = read_node(BuiltinOperator.STRIDED_SLICE, inputs, output, options)
    assert isinstance(node.op, StridedSlice)
    assert len(node.op.begin) == len(node.op.strides) == len(node.op.extent) == len(shape)
    assert np.array_equal(take(node.op, data).reshape(expected.shape), expected)


def test_reversed() -> None:
    """A negative stride begins at the end."""
    inputs, output, options = index_model((5, 4), (slice(None, None, -2),), (3, 4))
    node = read_node(BuiltinOperator.STRIDED_SLICE, inputs, output, options)
    assert node.op == StridedSlice((4, 0), (-2, 1), (3, 4))
    assert [tensor.name for tensor in node.inputs] == ["x0"]


def test_slice_takes_the_rest() -> None:
    """A size of -1 goes to the end of the axis."""
    node = read_node(
        BuiltinOperator.SLICE,
        [Value((5, 6)), ints(1, 2, dtype=np.int64), ints(3, -1, dtype=np.int64)],
        Value((3, 4)),
    )
    assert node.op == StridedSlice((1, 2), (1, 1), (3, 4))


STRIDED = BuiltinOperator.STRIDED_SLICE


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            model(
                BuiltinOperator.SLICE,
                [Value((5,)), ints(3), ints(3)],
                Value((3,)),
            ),
            "begin (3,) and size (3,) reach outside the shape (5,)",
        ),
        (
            model(
                BuiltinOperator.SLICE,
                [Value((5,)), ints(3, 0), ints(2, 1)],
                Value((2,)),
            ),
            "begin (3, 0) and size (2, 1) for data of shape (5,)\n  expected: one number per dim",
        ),
        (
            model(
                STRIDED,
                [Value((5,)), ints(0), ints(5), ints(0)],
                Value((5,)),
                StridedSliceOptions(),
            ),
            "a stride is 0",
        ),
        (
            model(
                STRIDED,
                [Value((5,)), ints(3), ints(3), ints(1)],
                Value((1,)),
                StridedSliceOptions(),
            ),
            "begin 3, end 3, stride 1 select nothing of an axis of 5",
        ),
        (
            model(
                STRIDED,
                [Value((5,)), ints(5), ints(6), ints(1)],
                Value(()),
                StridedSliceOptions(shrink_axis_mask=1),
            ),
            "index 5 with stride 1 in an axis of 5\n  expected: -5 to 4, stride above 0",
        ),
        (
            model(
                STRIDED,
                [Value((5,)), ints(0, 0), ints(1, 1), ints(1, 1)],
                Value((1,)),
                StridedSliceOptions(),
            ),
            "2 indices and 0 ellipses for data of shape (5,)",
        ),
        (
            model(
                STRIDED,
                [Value((5,)), ints(0, 0), ints(1, 1), ints(1, 1)],
                Value((5,)),
                StridedSliceOptions(ellipsis_mask=3),
            ),
            "0 indices and 2 ellipses",
        ),
        (
            model(
                STRIDED,
                [Value((5,)), ints(0), ints(1, 1), ints(1)],
                Value((1,)),
                StridedSliceOptions(),
            ),
            "begin (0,), end (1, 1) and strides (1,) differ in length",
        ),
        (
            model(
                STRIDED,
                [Value((5,)), Value((1,), np.int32), ints(1), ints(1)],
                Value((1,)),
                StridedSliceOptions(),
            ),
            "the model computes the begin (input 1 'x1')",
        ),
    ],
)
def test_refusals(data: bytes, text: str) -> None:
    """Each contradiction is named, with what would be legal."""
    assert text in refusal(data)


def computed_slice(
    shape: tuple[int, ...], result: tuple[int, ...], end: Value | None = None, **options: Any
) -> bytes:
    """A STRIDED_SLICE of which the model is given the begin and, but for a constant, the end."""
    places = Value((len(shape),), np.int32)
    chosen = StridedSliceOptions(**options)
    ones = ints(*(1,) * len(shape))
    inputs = [Value(shape), places, places if end is None else end, ones]
    return model(BuiltinOperator.STRIDED_SLICE, inputs, Value(result), chosen)


@pytest.mark.tools
@pytest.mark.parametrize(
    ("result", "options", "begins", "entries"),
    [
        ((1, 4, 3), {}, (0, 5, 0), (slice(0, 1), slice(5, 9), slice(None))),
        ((1, 4, 3), {"end_mask": 5, "begin_mask": 5}, (0, -5, 0), (0, slice(5, 9), slice(None))),
        ((4, 3), {"shrink_axis_mask": 1}, (0, 6, 0), (0, slice(6, 10), slice(None))),
        ((1, 3), {"shrink_axis_mask": 2}, (0, -1, 0), (slice(None), 9, slice(None))),
        ((), {"shrink_axis_mask": 7}, (0, 9, -3), (0, 9, 0)),
    ],
)
def test_a_computed_begin_with_a_known_length(
    result: tuple[int, ...], options: dict[str, Any], begins: tuple[int, ...], entries: Any
) -> None:
    """It is what LiteRT takes; numbers below 0 count from the end."""
    shape = (1, 10, 3)
    data = computed_slice(shape, result, **options)
    lengths = [extent if extent in (1, 3) else 4 for extent in shape]
    ends = [
        begin + length if begin + length or begin >= 0 else extent
        for begin, length, extent in zip(begins, lengths, shape, strict=True)
    ]
    x = np.arange(30, dtype=np.float32).reshape(shape)
    given = [x, np.array(begins, np.int32), np.array(ends, np.int32)]
    graph = read(data)
    (got,) = execute(graph, {f"x{i}": value for i, value in enumerate(given)}).values()
    assert got.tolist() == x[entries].reshape(result).tolist()
    (compiled,) = (microtir.host.load(microtir.build(microtir.frontend.from_tflite(data))),)
    (by_c,) = compiled.run({f"x{i}": value for i, value in enumerate(given)}).values()
    assert by_c.tolist() == got.tolist()


def test_a_part_of_unknown_length_is_refused() -> None:
    """A constant end says another length for each begin, and so does an end that is masked."""
    shape = (1, 10, 3)
    for data in (
        computed_slice(shape, (1, 4, 3), ints(1, 9, 3)),
        computed_slice(shape, (1, 4, 3), end_mask=2),
        computed_slice(shape, (1, 4, 3), begin_mask=2),
    ):
        text = refusal(data)
        assert "the model computes the begin (input 1 'x1') of a part of unknown length" in text
        assert "expected: a constant begin, or an end that moves with the begin" in text
    moved = computed_slice(shape, (1, 4, 3), ints(1, 4, 3), offset=True)
    (node,) = read(moved).nodes
    assert isinstance(node.op, StridedSlice)
    assert node.op.extent == (1, 4, 3)
    assert "(1, 4, 3)" in refusal(computed_slice(shape, (1, 4, 3), ints(1, 5, 3), offset=True))
