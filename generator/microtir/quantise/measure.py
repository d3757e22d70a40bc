"""Measure what integers cost, tensor by tensor and layer by layer, on samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node, Tensor
from microtir.operators import record_of
from microtir.operators.control.definition import Control
from microtir.quantise.build import Built, Plan
from microtir.quantise.ranges import clipped_share, error_of, excess_of, real_range
from microtir.quantise.result import LayerFigures, TensorRange
from microtir.quantise.runs import as_stored, real, values
from microtir.quantise.statistics import Statistics

_NO_ERROR = 200.0  # dB, where nothing differs


@dataclass(slots=True)
class Difference:
    """The power of real numbers, and that of the error of what stands for them."""

    signal: float = 0.0
    noise: float = 0.0

    def add(self, expected: Array, actual: Array) -> None:
        """Add the values of a sample."""
        self.signal += float(np.square(expected, dtype=np.float64).sum())
        self.noise += float(np.square(expected.astype(np.float64) - actual).sum())

    @property
    def decibels(self) -> float:
        """Return the ratio of both in dB, from -200 to 200."""
        if self.noise <= self.signal * 10.0 ** (-_NO_ERROR / 10):
            return _NO_ERROR
        ratio = max(self.signal, np.finfo(np.float64).tiny) / self.noise
        return max(10.0 * float(np.log10(ratio)), -_NO_ERROR)


def differences(
    plan: Plan, result: Built, runs: Sequence[Mapping[str, Array]]
) -> Mapping[Tensor, Difference]:
    """Return for each activation of the float graph how far integers are from it.

    Args:
        plan: of the graph of integers.
        result: what was built by it.
        runs: arguments of each run of the float graph.
    """
    pairs = [(t, one) for t, one in result.tensors.items() if t.dtype is DType.FLOAT32]
    measured = {tensor: Difference() for tensor, _ in pairs}
    both = zip(
        values(plan.graph, runs),
        values(result.graph, as_stored(result.graph, runs)),
        strict=True,
    )
    for expected, actual in both:
        for tensor, one in pairs:
            measured[tensor].add(expected[tensor.name], real(actual[one.name], one.type))
    return measured


def layer_figures(
    plan: Plan, result: Built, measured: Mapping[Tensor, Difference]
) -> Iterator[LayerFigures]:
    """Yield the figures of each layer of integers.

    Args:
        plan: of the graph of integers.
        result: what was built by it.
        measured: the differences of its activations.
    """
    for node, form in plan.forms.items():
        if isinstance(node.op, Control):
            continue
        outputs = [measured[tensor] for tensor in node.outputs if tensor in measured]
        dead, outlier = _channels(node, result.nodes[node])
        yield LayerFigures(
            node.name,
            node.source.operator,
            form.width,
            min((difference.decibels for difference in outputs), default=_NO_ERROR),
            dead,
            outlier,
        )


def _channels(node: Node, stored: Node) -> tuple[tuple[int, ...], float]:
    """Return the channels of weights that are all 0, and by how much the largest exceeds others."""
    axis = record_of(node.op).definition.quantization.weight_axis
    if axis is None or stored.inputs[1].data is None:
        return (), 1.0
    integers, reals = (n.inputs[1].values for n in (stored, node))
    others = tuple(n for n in range(integers.ndim) if n != axis)
    is_dead = ~integers.any(axis=others)
    largest = np.abs(reals).max(axis=others)[~is_dead]
    outlier = float(largest.max() / np.median(largest)) if largest.size else 1.0
    return tuple(np.flatnonzero(is_dead).tolist()), outlier


def tensor_ranges(plan: Plan, statistics: Mapping[Tensor, Statistics]) -> Iterator[TensorRange]:
    """Yield the ranges of activations in integers, in the order of the float graph."""
    order = {tensor: number for number, tensor in enumerate(plan.graph.tensors())}
    activations = (one for one in plan.quants if one.tensor in statistics)
    for one in sorted(activations, key=lambda one: order[one.tensor]):
        quant, seen = plan.quants[one], statistics[one.tensor]
        calibration = plan.calibrations.get(one)
        yield TensorRange(
            one.tensor.name,
            plan.integer_type(one),
            (seen.low, seen.high),
            real_range(quant, one.dtype),
            calibration,
            clipped_share(seen, quant, one.dtype),
            1.0 if calibration is None else excess_of(seen),
            error_of(seen, quant, one.dtype),
        )
