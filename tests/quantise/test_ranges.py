"""Ranges of activations: formulas against numpy, and properties that every calibration has."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from microtir.dtype import DType
from microtir.graph.ir import Array, TensorType
from microtir.quantise import Calibration, QuantiseOptions
from microtir.quantise.ranges import affine, clipped_share, error_of, range_by, real_range
from microtir.quantise.runs import real, stored
from microtir.quantise.statistics import BINS, Statistics

CALIBRATIONS = [c for c in Calibration if c is not Calibration.AUTO]
values = arrays(np.float32, st.integers(1, 200), elements=st.floats(-1000, 1000, width=32))
ends = st.floats(-1e6, 1e6, width=32)


def _statistics(*samples: Array) -> Statistics:
    statistics = Statistics()
    for sample in samples:
        statistics.add(sample)
    return statistics


@given(ends, ends, st.sampled_from([DType.INT8, DType.INT16]))
def test_zero_is_one_of_the_integers(low: float, high: float, dtype: DType) -> None:
    """The zero point is in the type, and the range reaches the ends but for half a step."""
    quant = affine(low, high, dtype)
    assert dtype.min <= quant.zero_point <= dtype.max
    assert quant.scale > 0
    least, largest = real_range(quant, dtype)
    half = quant.scale * (0.5 + 1e-3)
    assert least <= min(low, 0) + half
    assert largest >= max(high, 0) - half
    assert dtype is DType.INT8 or quant.zero_point == 0


@given(values)
def test_extremes_and_counts_are_those_of_numpy(sample: Array) -> None:
    """Every value is in a bin, whatever sizes came before; bins stand for their values."""
    statistics = _statistics(np.array([1e-6], np.float32), sample, sample * np.float32(0.25))
    everything = np.concatenate([np.array([1e-6], np.float32), sample, sample * np.float32(0.25)])
    assert (statistics.low, statistics.high) == (everything.min(), everything.max())
    assert statistics.counts.sum() == everything.size
    width = 2.0**statistics.exponent * 2 / BINS
    represented = np.repeat(statistics.centres, statistics.counts)
    np.testing.assert_allclose(represented, np.sort(everything), atol=width)


@given(values, st.sampled_from(CALIBRATIONS), st.sampled_from([DType.INT8, DType.INT16]))
def test_ranges_are_within_what_was_seen(
    sample: Array, calibration: Calibration, dtype: DType
) -> None:
    """No calibration widens a range beyond the extremes, and all are legal."""
    statistics = _statistics(sample, sample[::2])
    chosen = range_by(calibration, statistics, dtype, QuantiseOptions())
    slack = 1e-6 * max(abs(statistics.low), abs(statistics.high))
    assert statistics.low - slack <= chosen.low <= chosen.high <= statistics.high + slack
    assert affine(chosen.low, chosen.high, dtype).scale > 0


def test_average_moves_towards_the_newest() -> None:
    """A tenth of the newest extremes, the rest of those before."""
    statistics = _statistics(np.array([-1, 3], np.float32), np.array([-2, 13], np.float32))
    chosen = range_by(Calibration.AVERAGE, statistics, DType.INT8, QuantiseOptions())
    np.testing.assert_allclose([chosen.low, chosen.high], [-1.1, 4.0])


def test_percentile_leaves_out_a_share() -> None:
    """A range of 98 percent has one hundredth of the values on either side."""
    sample = np.linspace(-1, 1, 10001, dtype=np.float32)
    options = QuantiseOptions(percentile=98.0)
    chosen = range_by(Calibration.PERCENTILE, _statistics(sample), DType.INT8, options)
    np.testing.assert_allclose([chosen.low, chosen.high], [-0.98, 0.98], atol=2e-3)


def test_least_error_and_divergence_cut_an_outlier() -> None:
    """One value of a hundred times the spread is not worth the steps of all others."""
    rng = np.random.default_rng(0)
    sample = np.append(rng.standard_normal(20000), 40.0).astype(np.float32)
    statistics = _statistics(sample)
    quants = {
        calibration: affine(*_ends(statistics, calibration), DType.INT8)
        for calibration in CALIBRATIONS
    }
    errors = {c: error_of(statistics, quant, DType.INT8) for c, quant in quants.items()}
    assert min(errors, key=lambda c: errors[c]) is Calibration.MSE
    assert quants[Calibration.ENTROPY].scale < quants[Calibration.MINMAX].scale / 2


def _ends(statistics: Statistics, calibration: Calibration) -> tuple[float, float]:
    chosen = range_by(calibration, statistics, DType.INT8, QuantiseOptions())
    return chosen.low, chosen.high


@pytest.mark.parametrize("low", [-3.0, -1.0, 0.0])
def test_measured_error_is_that_of_numpy(low: float) -> None:
    """The histogram gives the mean squared error of stored values to a few percent."""
    sample = np.random.default_rng(1).uniform(-3, 5, 50000).astype(np.float32)
    statistics, quant = _statistics(sample), affine(low, 4.0, DType.INT8)
    type_ = TensorType(sample.shape, DType.INT8, quant)
    expected = np.square(real(stored(sample, type_), type_).astype(np.float64) - sample).mean()
    np.testing.assert_allclose(error_of(statistics, quant, DType.INT8), expected, rtol=0.05)
    outside = ((sample < low) | (sample > 4.0)).mean()
    np.testing.assert_allclose(clipped_share(statistics, quant, DType.INT8), outside, atol=0.01)


@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("constant", [0.0, 2.5, -1e-30, 1e20])
def test_constant_tensors_have_ranges(constant: float, calibration: Calibration) -> None:
    """A tensor of one value has a scale, and is stored near it."""
    sample = np.full(16, constant, np.float32)
    statistics = _statistics(sample)
    quant = affine(*_ends(statistics, calibration), DType.INT8)
    type_ = TensorType(sample.shape, DType.INT8, quant)
    np.testing.assert_allclose(real(stored(sample, type_), type_), sample, rtol=0.01, atol=1e-25)
