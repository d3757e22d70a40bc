"""Collect what the activations of a float graph are on samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.errors import UsageError
from microtir.graph.ir import Array, Graph, Node, Tensor
from microtir.operators.control.definition import EndRepeat, turns_of
from microtir.quantise.runs import observed

BINS = 8192
_NEWEST = 0.1  # share of a sample in the moving average of extremes


@dataclass(slots=True)
class Statistics:
    """The values of one activation: extremes, their moving average, zeros, and a histogram.

    The histogram has `BINS` bins of one size from -2^exponent to 2^exponent. Where a value leaves
    that, bins are added up by twos until it fits, so that one pass over the samples will do.
    """

    low: float = math.inf
    high: float = -math.inf
    average: tuple[float, float] | None = None
    exponent: int = -40
    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS, np.int64))
    zeros: int = 0

    def add(self, values: Array) -> None:
        """Add the values of a sample."""
        low, high = float(values.min()), float(values.max())
        self.low, self.high = min(self.low, low), max(self.high, high)
        if self.average is None:
            self.average = low, high
        else:
            before, rest = self.average, 1.0 - _NEWEST
            self.average = before[0] * rest + low * _NEWEST, before[1] * rest + high * _NEWEST
        self.zeros += int(values.size - np.count_nonzero(values))
        self._widen(max(abs(low), abs(high)))
        places = values.reshape(-1) * np.float64(BINS / 2 * 2.0**-self.exponent) + BINS / 2
        self.counts += np.bincount(np.minimum(places.astype(np.int64), BINS - 1), minlength=BINS)

    def _widen(self, largest: float) -> None:
        while largest > 2.0**self.exponent:
            quarter, self.exponent = BINS // 4, self.exponent + 1
            halved = np.zeros_like(self.counts)
            halved[quarter : 3 * quarter] = self.counts.reshape(-1, 2).sum(axis=1)
            self.counts = halved

    @property
    def centres(self) -> npt.NDArray[np.float64]:
        """Return the value that stands for each bin."""
        middle = (np.arange(BINS) + 0.5 - BINS / 2) * (2.0**self.exponent * 2 / BINS)
        return np.clip(middle, self.low, self.high)


def collected(graph: Graph, runs: Sequence[Mapping[str, Array]]) -> Mapping[Tensor, Statistics]:
    """Return the statistics of each activation of real numbers.

    Args:
        graph: of floats, verified.
        runs: arguments of each run; states go from one run to the next.

    Raises:
        UsageError: a layer gives a value that is not finite.
    """
    statistics = {t: Statistics() for t in graph.tensors() if _is_real(t)}

    def observe(node: Node, outputs: tuple[Array, ...]) -> None:
        for tensor, values in zip(node.outputs, outputs, strict=True):
            if _is_real(tensor):
                if not np.isfinite(values).all():
                    raise UsageError(
                        "the result of this layer is not finite for a sample",
                        where=f"{node.source} ('{node.name}')",
                        fix="check the scaling of the samples, and leave out damaged samples",
                    )
                statistics[tensor].add(values)
        if isinstance(node.op, EndRepeat):  # what the next turn begins with
            for (tensor, _), values in zip(turns_of(node), outputs, strict=True):
                if _is_real(tensor):
                    statistics[tensor].add(values)

    for inputs in observed(graph, runs, observe):
        for tensor in graph.inputs:
            if _is_real(tensor):
                statistics[tensor].add(inputs[tensor.name])
    return statistics


def _is_real(tensor: Tensor) -> bool:
    return tensor.dtype is DType.FLOAT32 and not tensor.is_constant
