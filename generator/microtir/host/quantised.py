"""Quantise a float graph by the samples of a file, and sum up what it cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from microtir.graph.ir import Graph
from microtir.host.float_samples import FloatSamples, read_float_samples
from microtir.quantise import Quantised, QuantiseOptions, quantise
from microtir.quantise.cost import cost
from microtir.quantise.summary import Summary, summed_up


@dataclass(frozen=True, slots=True, eq=False)
class QuantisedBySamples:
    """A quantised graph, with what it was made by.

    Args:
        result: the graph and what was learnt on the way.
        samples: of the file.
        options: of the quantiser.
    """

    result: Quantised
    samples: FloatSamples
    options: QuantiseOptions

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is odd about the samples."""
        return (*self.result.warnings, *self.samples.doubts)

    def summary(self) -> Summary:
        """Run both graphs on samples that did not calibrate, and return what integers cost."""
        inputs, result = self.samples.inputs, self.result
        measured = cost(result, inputs, self.options.holdout, self.samples.labels)
        count = len(next(iter(inputs.values()))) if inputs else 0
        return summed_up(result, measured, count, self.options, self.samples.doubts)


def quantised_by(
    graph: Graph,
    path: Path,
    options: QuantiseOptions,
    labels: str | None,
    tell: Callable[[str], None],
    search: Callable[[FloatSamples], Quantised] | None = None,
) -> QuantisedBySamples:
    """Quantise a graph by the samples of a file.

    Args:
        graph: of floats, as a reader gave it.
        path: an `.npz` file, or an `.npy` file for the only input.
        options: of the quantiser.
        labels: the name of the array that says what is right; None for the usual ones.
        tell: is told what begins.
        search: quantises the graph instead, with widths that it chooses.

    Raises:
        DataFileError: the file is damaged, or lacks an array.
        UsageError: samples do not fit, or no layer has a form in integers.
    """
    tell("reading the samples")
    samples = read_float_samples(path, graph, labels)
    tell("calibrating and quantising")
    result = search(samples) if search else quantise(graph, samples.inputs, options)
    return QuantisedBySamples(result, samples, options)
