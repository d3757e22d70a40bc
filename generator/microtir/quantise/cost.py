"""Measure what integers cost at the outputs of a model: error, and right answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from microtir.errors import UsageError
from microtir.graph.ir import Array, Graph, TensorType
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
        output = floats.type_of_all(floats.results[0])
        wanted = None if labels is None else fitted_labels(labels, output)[list(numbers)]
        return Reference(floats, runs, bool(held), _results(floats, runs), wanted)

    def cost(self, integers: Graph) -> Cost:
        """Run a graph of integers that stands for the float graph, and compare."""
        before = self.answers
        after = _results(integers, list(as_stored(integers, self.runs)))
        pairs = tuple(zip(self.floats.results, integers.results, strict=True))
        outputs = tuple(
            _difference(a.name, [run[a.name] for run in before], [run[b.name] for run in after])
            for a, b in pairs
        )
        name, other = (tensor.name for tensor in pairs[0])
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


def fitted_labels(labels: Array, output: TensorType) -> Array:
    """Return labels as one class each, or as rows of numbers that the output should be.

    Rows in which a single 1 stands among zeros are classes.

    Raises:
        UsageError: they are neither.
    """
    size, flat = output.elements, labels.reshape(len(labels), math.prod(labels.shape[1:]))
    kind = flat.dtype.kind if flat.size else ""
    is_row, has_classes = flat.shape[1] == size, size > 1 or output.dtype.is_int
    if size > 1 and is_row and kind in [*"biuf"] and (np.sort(flat) == np.eye(size)[-1]).all():
        return np.asarray(flat.argmax(axis=1))
    if flat.shape[1] == 1 and has_classes and kind in ("i", "u"):
        if size == 1 or 0 <= flat.min() <= flat.max() < size:
            return flat[:, 0]
    elif is_row and kind in ("f" if has_classes else "biuf") and kind and np.isfinite(flat).all():
        return flat.astype(np.float64)
    span = f" from {flat.min()} to {flat.max()}," if kind and kind in "iuf" else ""
    what = f"the labels are {labels.dtype}{span} of the shape {labels.shape}"
    legal = (
        f"an integer from 0 to {size - 1} for each sample, or floats of the shape {output.shape}"
    )
    raise UsageError(what, where="labels", legal=legal if size > 1 else "a number for each sample")


def _score(labels: Array, before: Array, after: Array) -> Score:
    """Return the share of right classes, or mean squared errors of numbers."""
    both = before, after
    if labels.dtype.kind == "f":
        first, second = (float(np.square(labels - one, dtype=np.float64).mean()) for one in both)
        return Score(first, second, is_accuracy=False)
    chosen = [one.argmax(axis=1) if one.shape[1] > 1 else one[:, 0] for one in both]
    first, second = (float((one == labels).mean()) for one in chosen)
    return Score(first, second, is_accuracy=True)
