"""Measure what integers cost at the outputs of a model: error, and right answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from microtir.errors import UsageError
from microtir.graph.ir import Array, Graph
from microtir.quantise.measure import Difference
from microtir.quantise.result import Quantised
from microtir.quantise.runs import as_stored, real, values
from microtir.quantise.samples import held_out

_MOST = 200  # samples that are run


@dataclass(frozen=True, slots=True)
class OutputCost:
    """The difference of an output: power of its values over that of the error, in dB."""

    name: str
    sqnr: float
    largest: float


@dataclass(frozen=True, slots=True)
class Score:
    """The quality of answers before and after: the share that is right, or mean squared errors."""

    before: float
    after: float
    is_accuracy: bool

    @property
    def kind(self) -> str:
        """Return what the numbers are."""
        return "accuracy" if self.is_accuracy else "mean squared error"


@dataclass(frozen=True, slots=True)
class Cost:
    """The price of integers.

    Args:
        samples: that were run.
        are_new: whether none of them was calibrated on.
        outputs: each one's difference.
        decided_otherwise: samples of which another class is the largest; None without classes.
        score: by labels; None where there are none.
    """

    samples: int
    are_new: bool
    outputs: tuple[OutputCost, ...]
    decided_otherwise: int | None
    score: Score | None

    @property
    def error(self) -> float:
        """Return the power of an output's difference as a share of that of its values."""
        return max((10.0 ** (-one.sqnr / 10) for one in self.outputs), default=0.0)

    @property
    def loss(self) -> float:
        """Return what is lost, as a share: 0.01 is one percent.

        With classes it is the share of the samples that is no longer right, with wanted numbers the
        growth of their mean squared error, without labels (and where floats have no error) `error`.
        """
        if self.score is None:
            return self.error
        before, after = self.score.before, self.score.after
        if self.score.is_accuracy:
            return before - after
        return after / before - 1 if before > 0 else self.error


def cost(
    quantised: Quantised,
    samples: Mapping[str, Array],
    holdout: float,
    labels: Array | None = None,
) -> Cost:
    """Run the float graph and the graph of integers on samples that did not calibrate it.

    Args:
        quantised: the result.
        samples: as `quantise` was given them.
        holdout: the share that it was told to measure with.
        labels: for each sample its class, or the numbers that the first output should be.

    Raises:
        UsageError: labels do not fit the output.
    """
    return Reference.of(quantised.floats_graph, samples, holdout, labels).cost(quantised.graph)


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """Samples that did not calibrate, and what the float graph answers to them.

    Args:
        floats: the graph.
        runs: its arguments.
        are_new: whether none of them was calibrated on.
        answers: its outputs by name.
        labels: of the runs; None where there are none.
    """

    floats: Graph
    runs: Sequence[Mapping[str, Array]]
    are_new: bool
    answers: Sequence[Mapping[str, Array]]
    labels: Array | None

    @property
    def kind(self) -> str:
        """Return the name of what a loss is measured in."""
        if self.labels is None:
            return "difference of outputs"
        return "mean squared error" if self.labels.dtype.kind == "f" else "accuracy"

    @staticmethod
    def of(
        floats: Graph, samples: Mapping[str, Array], holdout: float, labels: Array | None
    ) -> Reference:
        """Run the float graph; the arguments are those of `cost`."""
        count = len(next(iter(samples.values()))) if samples else 1
        held = () if floats.states else held_out(count, holdout)
        numbers = (held or tuple(range(count)))[:_MOST]
        runs = [
            {
                tensor.name: np.ascontiguousarray(
                    samples[tensor.name][number], tensor.dtype.value
                ).reshape(tensor.shape)
                for tensor in floats.arguments
            }
            for number in numbers
        ]
        wanted = None if labels is None else labels[list(numbers)]
        return Reference(floats, runs, bool(held), _results(floats, runs), wanted)

    def cost(self, integers: Graph) -> Cost:
        """Run a graph of integers that stands for the float graph, and compare.

        Raises:
            UsageError: labels do not fit the output.
        """
        before = self.answers
        after = _results(integers, list(as_stored(integers, self.runs)))
        names = [
            (real.name, stored.name)
            for real, stored in zip(self.floats.results, integers.results, strict=True)
        ]
        outputs = tuple(
            _difference(name, [run[name] for run in before], [run[other] for run in after])
            for name, other in names
        )
        name, other = names[0]
        first = [run[name].reshape(-1) for run in before], [run[other].reshape(-1) for run in after]
        decided = None
        if self.floats.results[0].dtype.is_float and len(first[0][0]) > 1:
            decided = sum(int(a.argmax() != b.argmax()) for a, b in zip(*first, strict=True))
        score = None if self.labels is None else _score(self.labels, *map(np.stack, first))
        return Cost(len(self.runs), self.are_new, outputs, decided, score)


def _results(graph: Graph, runs: Sequence[Mapping[str, Array]]) -> list[dict[str, Array]]:
    """Return the outputs of runs as real numbers."""
    return [
        {t.name: np.asarray(real(run[t.name], t.type)) for t in graph.results}
        for run in values(graph, runs)
    ]


def _difference(name: str, expected: Sequence[Array], actual: Sequence[Array]) -> OutputCost:
    difference, largest = Difference(), 0.0
    for wanted, result in zip(expected, actual, strict=True):
        difference.add(wanted, result)
        largest = max(largest, float(np.abs(wanted.astype(np.float64) - result).max()))
    return OutputCost(name, difference.decibels, largest)


def _score(labels: Array, before: Array, after: Array) -> Score:
    """Return the share of right classes, or mean squared errors of numbers."""
    flat = labels.reshape(len(labels), -1)
    if labels.dtype.kind == "f" and flat.shape == before.shape:
        before_error, after_error = (
            float(np.square(flat - outputs, dtype=np.float64).mean()) for outputs in (before, after)
        )
        return Score(before_error, after_error, is_accuracy=False)
    if labels.dtype.kind not in "iu" or flat.shape[1] > 1 or before.shape[1] < 2:
        raise UsageError(
            f"the labels are {labels.dtype} of the shape {labels.shape}",
            where="labels",
            legal=f"an integer from 0 to {before.shape[1] - 1} for each sample, or floats of the "
            f"output's shape {before.shape}",
        )
    before_right, after_right = (
        outputs.argmax(axis=1) == flat[:, 0] for outputs in (before, after)
    )
    return Score(float(before_right.mean()), float(after_right.mean()), is_accuracy=True)
