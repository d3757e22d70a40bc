from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtir.dtype import DType
from microtir.errors import RunError
from microtir.frontend import from_tflite
from microtir.host.compare import Comparison, compare
from microtir.host.tolerance import RelativeTolerance, is_hybrid, judge
from tests.support.command import FLOAT, INT8
from tests.support.hybrid import hybrid_model

F32 = np.float32


def one(expected: npt.ArrayLike, got: npt.ArrayLike, rtol: float = 1e-5) -> Comparison:
    """Compare one output of one sample, as float32 unless they are arrays."""
    arrays = [x if isinstance(x, np.ndarray) else np.array(x, F32) for x in (expected, got)]
    return compare([{"y": arrays[0]}], [{"y": arrays[1]}], RelativeTolerance(rtol))


@given(st.lists(st.integers(-128, 127), min_size=1, max_size=20), st.data())
def test_integers_must_be_identical(values: list[int], data: st.DataObject) -> None:
    """A tensor equals itself; one step in one element is one mismatch, whatever the tolerance."""
    expected = np.array(values, np.int8)
    assert one(expected, expected.copy(), rtol=1e9).equal
    position = data.draw(st.integers(0, len(values) - 1))
    other = expected.copy()
    other[position] ^= 1
    found = one(expected, other, rtol=1e9)
    assert (found.mismatches, found.values, found.max_abs_error) == (1, len(values), 1)
    (difference,) = found.differences
    assert difference.index == (position,)
    assert (difference.expected, difference.got) == (expected[position], other[position])


@given(st.floats(1e-3, 1e6), st.floats(1e-7, 1e-1))
def test_tolerance_is_relative_to_the_largest(scale: float, rtol: float) -> None:
    """An error just below rtol times the largest magnitude passes, also of a small element."""
    expected = np.array([1.0, -scale * 4, 0.0], np.float64)
    limit = rtol * float(np.abs(expected).max())
    for sign in (1, -1):
        near, far = expected.copy(), expected.copy()
        near[2] += sign * limit * 0.999
        far[2] += sign * limit * 1.001
        assert one(expected, near, rtol).equal
        found = one(expected, far, rtol)
        assert (found.mismatches, found.differences[0].index) == (1, (2,))
        assert found.max_abs_error == pytest.approx(limit * 1.001)


def test_each_sample_has_its_own_largest() -> None:
    """A large sample does not lend its tolerance to a small one, nor one output to another."""
    big, small = np.array([1000.0], F32), np.array([1.0], F32)
    off = small + F32(1e-3)
    assert (
        compare(
            [{"y": big}, {"y": small}], [{"y": big}, {"y": off}], RelativeTolerance(1e-5)
        ).mismatches
        == 1
    )
    assert (
        compare(
            [{"y": big, "z": small}], [{"y": big, "z": off}], RelativeTolerance(1e-5)
        ).mismatches
        == 1
    )


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ([1.0, math.nan], [1.0, math.nan]),
        ([1.0, 2.0], [1.0, math.nan]),
        ([1.0, math.nan], [1.0, 2.0]),
        ([1.0, math.inf], [1.0, -math.inf]),
        ([1.0, math.inf], [1.0, 3e38]),
        ([1.0, 2.0], [1.0, math.inf]),
    ],
)
def test_what_is_not_finite(expected: list[float], got: list[float]) -> None:
    """NaN differs, also from NaN; an infinity differs from all but itself; the error is NaN."""
    found = one(expected, got, rtol=0.5)
    assert (found.mismatches, found.equal) == (1, False)
    assert math.isnan(found.max_abs_error)


def test_infinities_that_agree() -> None:
    """Equal infinities are equal, and do not loosen the tolerance of the others."""
    assert one([math.inf, 1.0], [math.inf, 1.0]).equal
    assert one([math.inf, 1.0], [math.inf, 1.1]).mismatches == 1


def test_zeros() -> None:
    """A reference of zeros allows no error, and 0 equals -0."""
    assert one([0.0, 0.0], [-0.0, 0.0]).equal
    assert one([0.0, 0.0], [1e-30, 0.0]).mismatches == 1


@pytest.mark.parametrize("dtype", [t for t in DType if not t.is_float])
def test_extremes_do_not_wrap(dtype: DType) -> None:
    """The error between the ends of a type is their distance, not what the type makes of it."""
    low, high = (np.array([end], dtype.value) for end in (dtype.min, dtype.max))
    assert one(low, high).max_abs_error == float(dtype.max - dtype.min)


def test_counts_over_samples() -> None:
    """Values and mismatches are added up; each wrong output of each sample is listed."""
    zeros = {"a": np.zeros((2, 3), np.int8), "b": np.zeros(4, np.int8)}
    got = {"a": np.array([[0, 0, 5], [1, 0, 0]], np.int8), "b": np.zeros(4, np.int8)}
    found = compare([zeros, zeros, zeros], [zeros, got, got], RelativeTolerance(0.0))
    assert (found.samples, found.values, found.mismatches, found.max_abs_error) == (3, 30, 4, 5.0)
    assert [(d.sample, d.output, d.mismatches) for d in found.differences] == [
        (1, "a", 2),
        (2, "a", 2),
    ]
    assert found.differences[0].index == (0, 2)


@pytest.mark.parametrize(
    "got",
    [{}, {"y": np.zeros(3, F32)}, {"y": np.zeros(2, np.float64)}, {"z": np.zeros(2, F32)}],
)
def test_outputs_that_do_not_match(got: dict[str, npt.NDArray[np.float32]]) -> None:
    """A missing output, another shape or another type is an error, not a difference."""
    with pytest.raises(RunError, match="output 'y' of sample 0"):
        compare([{"y": np.zeros(2, F32)}], [got], RelativeTolerance(1e-5))


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_mask_has_the_shape(dtype: type[np.generic]) -> None:
    """The mask of mismatches is true exactly where the arrays differ."""
    expected = np.zeros((2, 3), dtype)
    got = expected.copy()
    got[1, 2] = 1
    assert np.argwhere(judge(expected, got, RelativeTolerance(1e-5), 0, "y").wrong).tolist() == [
        [1, 2]
    ]


def test_hybrid_models() -> None:
    """Float activations with int8 weights are a hybrid model; float and int8 models are not."""
    for path, expected in ((FLOAT, False), (INT8, False), (hybrid_model(), True)):
        graph = from_tflite(path).graph
        assert graph is not None
        assert is_hybrid(graph) is expected
