"""Quantise a float graph: the road from samples to integers, a step a line."""

from __future__ import annotations

from collections.abc import Mapping

from microtir.errors import UsageError
from microtir.graph.ir import Array, Graph
from microtir.quantise.measure import differences, layer_figures, tensor_ranges
from microtir.quantise.options import QuantiseOptions, Width
from microtir.quantise.planning import planned
from microtir.quantise.prepare import prepared
from microtir.quantise.result import Quantised
from microtir.quantise.samples import Samples
from microtir.quantise.statistics import collected
from microtir.rewrite.verify import verify
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
    floats = prepared(graph)
    data = Samples.of(floats, samples, options.holdout)
    statistics = collected(floats, data.calibrated)
    plan, result, left = planned(floats, statistics, options)
    if not plan.forms:
        raise UsageError(
            "no layer of the model has a form in integers",
            where=graph.name,
            legal="; ".join(f"'{one.name}': {one.why}" for one in left[:3]) or "layers of float32",
        )
    verify(result.graph)
    measured = differences(plan, result, data.measured)
    return Quantised(
        result.graph,
        floats,
        tuple(tensor_ranges(plan, statistics)),
        tuple(layer_figures(plan, result, measured)),
        left,
        frozenset(
            result.nodes[node].inputs[1].name
            for node, form in plan.forms.items()
            if form.width is Width.WEIGHTS4
        ),
        data.warnings,
    )
