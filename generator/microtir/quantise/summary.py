"""Sum up what quantisation cost: before and after, each layer, and what would mend the worst."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from microtir.graph.ir import Node
from microtir.operators.common.attributes import Activation
from microtir.quantise.cost import Cost
from microtir.quantise.layerwise import activation_of
from microtir.quantise.options import Calibration, QuantiseOptions, Width
from microtir.quantise.result import LayerFigures, LeftInFloats, Quantised, TensorRange

LOW = 20.0  # dB, below which a layer is worth a look
CLIPPED = 1e-3  # share of values above which a range is too narrow
EXCESS = 4.0  # times the range of nearly all values, from which few values take the integers
UNEVEN = 8.0  # times the median channel, from which the weights of one stand out

_WIDER = {Width.WEIGHTS4: Width.INT8, Width.INT8: Width.INT16, Width.INT16: Width.FLOAT}
_WHOLE = (Calibration.MINMAX, Calibration.AVERAGE)  # ranges that one value can widen
_UNBOUNDED = (Activation.NONE, Activation.RELU)


class Remedy(Enum):
    """A way to bring a layer nearer to its floats."""

    WIDER = "wider"
    WHOLE_RANGE = "min-max"
    PERCENTILE = "percentile"
    ACTIVATION = "activation"  # that is bounded, in training


@dataclass(frozen=True, slots=True)
class LayerCost:
    """The figures of a layer of integers, and what would mend it.

    Args:
        figures: as they were measured.
        clipped: the largest share of the values of a result that lie outside of its range.
        excess: by how much the range of a result exceeds that of nearly all its values.
        remedies: of a layer that is worth a look, the surest first.
    """

    figures: LayerFigures
    clipped: float
    excess: float
    remedies: tuple[Remedy, ...]

    @property
    def wider(self) -> Width:
        """Return the next width; floats are the widest."""
        return _WIDER.get(self.figures.width, Width.FLOAT)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON holds them."""
        one = self.figures
        return {
            "name": one.name,
            "operator": one.operator,
            "width": one.width.value,
            "sqnr_db": one.sqnr,
            "clipped": self.clipped,
            "excess": self.excess,
            "dead_channels": list(one.dead),
            "outlier": one.outlier,
            "remedies": [remedy.value for remedy in self.remedies],
        }


@dataclass(frozen=True, slots=True)
class Summary:
    """The price of integers, as one screen shows it.

    Args:
        samples: that there were in all.
        cost: at the outputs, on the samples that measured.
        calibrations: how many ranges each of them chose; None where operators fix them.
        layers: in integers, in their order; empty where nothing was measured.
        clipping: ranges of activations that leave values out, the worst first.
        floats: layers that stay in floats, and why.
        warnings: what is odd about the samples.
    """

    samples: int
    cost: Cost
    calibrations: tuple[tuple[Calibration | None, int], ...]
    layers: tuple[LayerCost, ...]
    clipping: tuple[TensorRange, ...]
    floats: tuple[LeftInFloats, ...]
    warnings: tuple[str, ...]

    @property
    def worst(self) -> LayerCost | None:
        """Return the layer that is farthest from its floats; None where none was measured."""
        return min(self.layers, key=lambda layer: layer.figures.sqnr, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON holds them."""
        cost, worst = self.cost, self.worst
        return {
            "samples": {
                "all": self.samples,
                "measured": cost.samples,
                "measured_are_new": cost.are_new,
            },
            "outputs": [
                {"name": one.name, "sqnr_db": one.sqnr, "largest_difference": one.largest}
                for one in cost.outputs
            ],
            "decided_otherwise": cost.decided_otherwise,
            "score": None if cost.score is None else {
                "kind": cost.score.kind,
                "before": cost.score.before,
                "after": cost.score.after,
            },
            "layers": [layer.to_dict() for layer in self.layers],
            "worst": None if worst is None else worst.figures.name,
            "floats": [{"name": one.name, "why": one.why} for one in self.floats],
            "warnings": list(self.warnings),
        }  # fmt: skip


def summed_up(
    result: Quantised,
    cost: Cost,
    samples: int,
    options: QuantiseOptions,
    doubts: Sequence[str] = (),
) -> Summary:
    """Return what quantisation cost.

    Args:
        result: of it.
        cost: at the outputs.
        samples: that there were.
        options: that it was asked for with.
        doubts: what else is odd about the samples.
    """
    ranges = {one.name: one for one in result.tensors}
    nodes = {node.name: node for node in result.floats_graph.nodes}
    worst = min((layer.sqnr for layer in result.layers), default=0.0)
    layers = tuple(
        _layer(one, nodes.get(one.name), ranges, options, is_looked_at=one.sqnr <= max(worst, LOW))
        for one in result.layers
    )
    clipping = [one for one in result.tensors if _is_chosen(one) and one.clipped > CLIPPED]
    return Summary(
        samples,
        cost,
        tuple(Counter(one.calibration for one in result.tensors).items()),
        layers,
        tuple(sorted(clipping, key=lambda one: -one.clipped)),
        result.floats,
        (*result.warnings, *doubts),
    )


def _is_chosen(one: TensorRange) -> bool:
    """Return whether a range is a choice: one that the operator fixes fits its results."""
    return one.calibration is not None


def _layer(
    figures: LayerFigures,
    node: Node | None,
    ranges: Mapping[str, TensorRange],
    options: QuantiseOptions,
    *,
    is_looked_at: bool,
) -> LayerCost:
    outputs = () if node is None else node.outputs
    known = (ranges[tensor.name] for tensor in outputs if tensor.name in ranges)
    results = [one for one in known if _is_chosen(one)]
    clipped = max((one.clipped for one in results), default=0.0)
    excess = max((one.excess for one in results), default=1.0)
    remedies = _remedies(node, clipped, excess, options) if is_looked_at else ()
    return LayerCost(figures, clipped, excess, tuple(remedies))


def _remedies(
    node: Node | None, clipped: float, excess: float, options: QuantiseOptions
) -> Iterator[Remedy]:
    """Yield what would mend a layer.

    Of calibrations AUTO has measured all, so that another is worth a try only where one was named.
    """
    asked = options.calibration
    if clipped > CLIPPED and asked not in (Calibration.AUTO, *_WHOLE):
        yield Remedy.WHOLE_RANGE
    if excess >= EXCESS and asked in _WHOLE:
        yield Remedy.PERCENTILE
    yield Remedy.WIDER
    if excess >= EXCESS and node is not None and activation_of(node) in _UNBOUNDED:
        yield Remedy.ACTIVATION
