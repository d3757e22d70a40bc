"""Choose the range of real numbers that the integers of an activation stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Quantization
from microtir.quantise.options import Calibration, QuantiseOptions
from microtir.quantise.statistics import Statistics

_SHARES = tuple(np.linspace(1.0, 0.25, 64).tolist())  # of the range that was seen, to try
_LEAST_SCALE = 2.0**-100


@dataclass(frozen=True, slots=True)
class Range:
    """A range, and the calibration that it comes from; lower constants count if not floored."""

    low: float
    high: float
    calibration: Calibration
    is_floored: bool = False


def affine(low: float, high: float, dtype: DType) -> Quantization:
    """Return the quantisation of a range, in which 0 is one of the integers.

    Integers of 16 bits have the zero point 0, and do not use their least value.

    Args:
        low: what the least integer stands for; 0 if it is above 0.
        high: what the largest integer stands for; 0 if it is below 0.
        dtype: INT8 or INT16.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    if dtype is DType.INT16:
        return Quantization((_scale(max(-low, high) / dtype.max),), (0,))
    scale = _scale((high - low) / (dtype.max - dtype.min))
    zero_point = round(dtype.min - low / scale)
    return Quantization((scale,), (min(max(zero_point, dtype.min), dtype.max),))


def _scale(real: float) -> float:
    """Return a scale as files store it; below 1, as comparisons want it, for zeros."""
    return float(np.float32(max(real, _LEAST_SCALE))) if real > 0 else 0.5


def real_range(quant: Quantization, dtype: DType) -> tuple[float, float]:
    """Return what the least and the largest integer stand for."""
    scale, zero_point = quant.scale, quant.zero_point
    return (dtype.min - zero_point) * scale, (dtype.max - zero_point) * scale


def error_of(statistics: Statistics, quant: Quantization, dtype: DType) -> float:
    """Return the mean squared error of stored values, as the histogram measures it.

    Values count as the middle of their bin; within a step of integers, as if they were anywhere.
    Zeros have no error.
    """
    centres, counts = statistics.centres, statistics.counts
    low, high = real_range(quant, dtype)
    beyond = centres - np.clip(centres, low, high)
    total = max(int(counts.sum()), 1)
    inside = (counts[beyond == 0].sum() - statistics.zeros) / total
    return float((counts * beyond**2).sum() / total + inside * quant.scale**2 / 12)


def clipped_share(statistics: Statistics, quant: Quantization, dtype: DType) -> float:
    """Return the share of values that are outside of the range by more than half a step."""
    low, high = real_range(quant, dtype)
    half = quant.scale / 2
    outside = (statistics.centres < low - half) | (statistics.centres > high + half)
    return float(statistics.counts[outside].sum() / max(int(statistics.counts.sum()), 1))


def excess_of(statistics: Statistics) -> float:
    """Return the range of all values over that of 99.9 % of them; both hold 0."""
    low, high = _percentile(statistics, DType.INT8, QuantiseOptions(percentile=99.9))
    usual = max(high, 0.0) - min(low, 0.0)
    whole = max(statistics.high, 0.0) - min(statistics.low, 0.0)
    return whole / usual if usual > 0 else 1.0


def range_by(
    calibration: Calibration, statistics: Statistics, dtype: DType, options: QuantiseOptions
) -> Range:
    """Return the range of an activation by a calibration, which is not AUTO."""
    return Range(*_RANGES[calibration](statistics, dtype, options), calibration)


def _extremes(
    statistics: Statistics, _dtype: DType, _options: QuantiseOptions
) -> tuple[float, float]:
    return statistics.low, statistics.high


def _average(
    statistics: Statistics, _dtype: DType, _options: QuantiseOptions
) -> tuple[float, float]:
    assert statistics.average is not None
    return statistics.average


def _percentile(
    statistics: Statistics, _dtype: DType, options: QuantiseOptions
) -> tuple[float, float]:
    """Return the range that leaves out half of the rest on either side."""
    shares = np.cumsum(statistics.counts) / max(int(statistics.counts.sum()), 1)
    outside = (1.0 - options.percentile / 100.0) / 2
    first = int(np.searchsorted(shares, outside, side="right"))
    last = int(np.searchsorted(shares, 1.0 - outside, side="left"))
    centres = statistics.centres
    return float(centres[min(first, len(centres) - 1)]), float(centres[min(last, len(centres) - 1)])


def _least_error(
    statistics: Statistics, dtype: DType, _options: QuantiseOptions
) -> tuple[float, float]:
    """Return the range of least error."""
    best = statistics.low, statistics.high
    for _ in range(2):
        best = _searched(statistics, dtype, best, _SHARES, error_of)
    return best


def _least_divergence(
    statistics: Statistics, dtype: DType, _options: QuantiseOptions
) -> tuple[float, float]:
    """Return the range whose integers have the distribution that is nearest to that of the values.

    Nearest by the divergence of Kullback and Leibler.
    """
    whole = statistics.low, statistics.high
    if dtype is not DType.INT8:
        return whole
    return _searched(statistics, dtype, whole, _SHARES[::2], _divergence)


def _searched(
    statistics: Statistics,
    dtype: DType,
    ends: tuple[float, float],
    shares: Sequence[float],
    cost: Callable[[Statistics, Quantization, DType], float],
) -> tuple[float, float]:
    """Return the ends of a range of least cost, one after the other, among shares of extremes."""

    def cost_of(low: float, high: float) -> float:
        return cost(statistics, affine(low, high, dtype), dtype)

    low, high = ends
    low = min((statistics.low * s for s in shares), key=lambda end: cost_of(end, high))
    high = min((statistics.high * s for s in shares), key=lambda end: cost_of(low, end))
    return low, high


def _divergence(statistics: Statistics, quant: Quantization, dtype: DType) -> float:
    """Return the divergence of stored values from real ones, per bin of the histogram."""
    counts, scale = statistics.counts.astype(np.float64), quant.scale
    stored = np.rint(statistics.centres / scale) + quant.zero_point - dtype.min
    places = np.clip(stored, 0, dtype.max - dtype.min).astype(np.int64)
    is_used = counts > 0
    outside = is_used & (stored != places)
    # What is clipped counts at the end of the range, where nothing of it was.
    clipped = np.where(outside, 0.0, counts)
    real = clipped.copy()
    for end, is_there in ((0, stored < 0), (-1, stored > dtype.max - dtype.min)):
        inside = np.flatnonzero(is_used & ~outside)
        if inside.size:
            real[inside[end]] += counts[is_there].sum()
    in_place = np.bincount(places, weights=clipped, minlength=1 << dtype.bits)
    bins = np.bincount(places, weights=(clipped > 0).astype(np.float64), minlength=1 << dtype.bits)
    shared = np.divide(in_place, bins, out=np.zeros_like(in_place), where=bins > 0)
    model = np.where(clipped > 0, shared[places], 0.0)
    p, q = real / max(real.sum(), 1.0), model / max(model.sum(), 1.0)
    both = (p > 0) & (q > 0)
    return float((p[both] * np.log(p[both] / q[both])).sum())


_RANGES: Mapping[
    Calibration, Callable[[Statistics, DType, QuantiseOptions], tuple[float, float]]
] = MappingProxyType({
    Calibration.MINMAX: _extremes,
    Calibration.AVERAGE: _average,
    Calibration.PERCENTILE: _percentile,
    Calibration.MSE: _least_error,
    Calibration.ENTROPY: _least_divergence,
})  # fmt: skip
