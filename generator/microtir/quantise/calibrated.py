"""Hold what samples say of a float graph, whatever integers its layers get."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from microtir.errors import UsageError
from microtir.graph.ir import Array, Graph, Tensor
from microtir.quantise.bias_correction import with_corrected_bias
from microtir.quantise.build import Built, Plan
from microtir.quantise.choice import Ranges
from microtir.quantise.digest import with_digest
from microtir.quantise.equalise import equalised
from microtir.quantise.layerwise import Improvement, improved
from microtir.quantise.measure import differences, layer_figures, tensor_ranges
from microtir.quantise.options import QuantiseOptions, Width
from microtir.quantise.planning import planned
from microtir.quantise.prepare import prepared
from microtir.quantise.result import LeftInFloats, Quantised
from microtir.quantise.rounding import AdaptiveRounding
from microtir.quantise.runs import recorded, turns
from microtir.quantise.samples import Samples
from microtir.quantise.statistics import Statistics, collected
from microtir.rewrite.verify import verify

_MOST_EQUALISED = 8  # runs that decide on factors
_MOST_RECORDED = 32  # runs whose values are held


@dataclass(frozen=True, slots=True, eq=False)
class Integers:
    """A graph of integers, how it was planned, and what is left in floats."""

    plan: Plan
    built: Built
    floats: tuple[LeftInFloats, ...]

    @property
    def graph(self) -> Graph:
        """Return the graph."""
        return self.built.graph


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """A float graph with its samples, of which graphs of integers of several widths are made.

    Args:
        floats: the graph, prepared.
        samples: of its arguments, checked.
        statistics: of all activations.
        recorded: the values of some runs, by name.
        turns: values at the end of some turns of loops, by name.
        ranges: of activations; each is chosen once.
    """

    floats: Graph
    samples: Samples
    statistics: Mapping[Tensor, Statistics]
    recorded: Sequence[Mapping[str, Array]]
    turns: Sequence[Mapping[str, Array]]
    ranges: Ranges

    @staticmethod
    def of(graph: Graph, samples: Mapping[str, Array], options: QuantiseOptions) -> Calibrated:
        """Prepare a graph, and run it on the samples.

        Raises:
            UsageError: samples do not fit, or a pattern of names fits no layer.
        """
        floats = prepared(graph, with_biases=options.correct_bias)
        for one in options.layers:
            if not fnmatch.filter([node.name for node in floats.nodes], one.pattern):
                raise UsageError(f"no layer has a name like '{one.pattern}'", where="layers")
        data = Samples.of(floats, samples, options.holdout)
        if options.equalise:
            floats = equalised(floats, recorded(floats, data.calibrated, _MOST_EQUALISED), options)
        statistics = collected(floats, data.calibrated)
        held = recorded(floats, data.calibrated, _MOST_RECORDED)
        steps = turns(floats, data.calibrated, _MOST_RECORDED)
        ranges = Ranges(floats, statistics, held, steps, options)
        return Calibrated(floats, data, statistics, held, steps, ranges)

    def integers(self, options: QuantiseOptions) -> Integers:
        """Return the graph of integers of these widths.

        Args:
            options: as those of `of`, but for the widths.

        Raises:
            UsageError: no layer has a form in integers.
        """
        plan, result, left = planned(self.floats, self.ranges.of, options)
        if not plan.forms:
            raise UsageError(
                "no layer of the model has an integer version",
                where=self.floats.name,
                legal="; ".join(f"'{one.name}': {one.why}" for one in left[:3])
                or "layers of float32",
            )
        result = improved(plan, result, self.recorded, self.turns, _improvements(options))
        verify(result.graph)
        return Integers(plan, result, left)

    def quantised(self, integers: Integers) -> Quantised:
        """Return a graph of integers with the figures of its layers."""
        plan, result = integers.plan, integers.built
        measured = differences(plan, result, self.samples.measured)
        return Quantised(
            with_digest(result.graph),
            self.floats,
            tuple(tensor_ranges(plan, self.statistics)),
            tuple(layer_figures(plan, result, measured)),
            integers.floats,
            frozenset(
                result.nodes[node].inputs[1].name
                for node, form in plan.forms.items()
                if form.width is Width.WEIGHTS4
            ),
            self.samples.warnings,
        )


def _improvements(options: QuantiseOptions) -> list[Improvement]:
    """Return what is done to the constants of each layer, in order."""
    improvements: list[Improvement] = []
    if options.rounding_work > 0:
        improvements.append(AdaptiveRounding(options.rounding_work))
    if options.correct_bias:
        improvements.append(with_corrected_bias)
    return improvements
