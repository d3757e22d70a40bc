"""Quantise a float graph: the road from samples to integers, a step a line."""

from __future__ import annotations

from collections.abc import Mapping

from microtir.errors import UsageError
from microtir.graph.ir import Array, Graph
from microtir.quantise.bias_correction import with_corrected_bias
from microtir.quantise.choice import Ranges
from microtir.quantise.digest import with_digest
from microtir.quantise.equalise import equalised
from microtir.quantise.layerwise import Improvement, improved
from microtir.quantise.measure import differences, layer_figures, tensor_ranges
from microtir.quantise.options import QuantiseOptions, Width
from microtir.quantise.planning import planned
from microtir.quantise.prepare import prepared
from microtir.quantise.result import Quantised
from microtir.quantise.rounding import AdaptiveRounding
from microtir.quantise.runs import recorded, turns
from microtir.quantise.samples import Samples
from microtir.quantise.statistics import collected
from microtir.rewrite.verify import verify
from microtir.support.arguments import checked_arguments

_MOST_EQUALISED = 8  # runs that decide on factors
_MOST_RECORDED = 32  # runs whose values are held


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
    floats = prepared(graph, with_biases=options.correct_bias)
    data = Samples.of(floats, samples, options.holdout)
    if options.equalise:
        floats = equalised(floats, recorded(floats, data.calibrated, _MOST_EQUALISED), options)
    statistics = collected(floats, data.calibrated)
    held = recorded(floats, data.calibrated, _MOST_RECORDED)
    steps = turns(floats, data.calibrated, _MOST_RECORDED)
    ranges = Ranges(floats, statistics, held, steps, options)
    plan, result, left = planned(floats, ranges.of, options)
    if not plan.forms:
        raise UsageError(
            "no layer of the model has a form in integers",
            where=graph.name,
            legal="; ".join(f"'{one.name}': {one.why}" for one in left[:3]) or "layers of float32",
        )
    result = improved(plan, result, held, steps, _improvements(options))
    verify(result.graph)
    measured = differences(plan, result, data.measured)
    return Quantised(
        with_digest(result.graph),
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


def _improvements(options: QuantiseOptions) -> list[Improvement]:
    """Return what is done to the constants of each layer, in order."""
    improvements: list[Improvement] = []
    if options.rounding_work > 0:
        improvements.append(AdaptiveRounding(options.rounding_work))
    if options.correct_bias:
        improvements.append(with_corrected_bias)
    return improvements
