"""Quantise a float graph: from samples to integers."""

from __future__ import annotations

from collections.abc import Mapping

from microtir.graph.ir import Array, Graph
from microtir.quantise.calibrated import Calibrated
from microtir.quantise.options import QuantiseOptions
from microtir.quantise.result import Quantised
from microtir.support.arguments import checked_arguments


@checked_arguments
def quantise(
    graph: Graph, samples: Mapping[str, Array], options: QuantiseOptions | None = None
) -> Quantised:
    """Return the graph of integers that stands for a float graph.

    Args:
        graph: as a reader gave it.
        samples: for each argument of the graph an array whose first axis counts samples.
        options: by default all layers are int8, calibrated by measured error.

    Raises:
        UsageError: samples do not fit, or no layer has a form in integers.
    """
    options = options or QuantiseOptions()
    calibrated = Calibrated.of(graph, samples, options)
    return calibrated.quantised(calibrated.integers(options))
