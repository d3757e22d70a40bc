"""Choose the range of each activation, by what it does to the layers that read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Graph, Node, Tensor, TensorType
from microtir.operators.arithmetic.definition import Add
from microtir.operators.control.definition import Control, PutItem, nodes_in_loops
from microtir.operators.recurrent.definition import Lstm
from microtir.operators.softmax.definition import Softmax
from microtir.operators.state.definition import Assign
from microtir.quantise.options import Calibration, QuantiseOptions
from microtir.quantise.ranges import Range, affine, range_by
from microtir.quantise.recurrent import CELL, cell_range
from microtir.quantise.runs import real, stored
from microtir.quantise.scales import Stored
from microtir.quantise.statistics import Statistics
from microtir.rewrite.reference import evaluate

_MOST_RUNS = 32
_NO_SHARE, _MASKED = 16.0, 1000.0  # below the largest value of a row, and of what masks hide


class Ranges:
    """The ranges of activations, each chosen once.

    AUTO takes the one with which the results of the layers that read the activation are nearest to
    those of floats: what is clipped adds up in their sums, and what is rounded does not. Of 16
    bits nothing is worth clipping.

    Args:
        graph: of floats.
        statistics: of all activations.
        recorded: the values of some runs, by name.
        turns: values at the end of some turns of loops, by name.
        options: which name the calibration.
    """

    def __init__(
        self,
        graph: Graph,
        statistics: Mapping[Tensor, Statistics],
        recorded: Sequence[Mapping[str, Array]],
        turns: Sequence[Mapping[str, Array]],
        options: QuantiseOptions,
    ) -> None:
        self._graph = graph
        self._statistics = statistics
        self._recorded = recorded[:: -(-len(recorded) // _MOST_RUNS)]
        self._turns = turns
        self._options = options
        self._chosen: dict[Stored, Range] = {}

    def of(self, one: Stored) -> Range:
        """Return the range of an activation."""
        if one not in self._chosen:
            self._chosen[one] = self._choose(one)
        return self._chosen[one]

    def _choose(self, one: Stored) -> Range:
        readers = self._readers.get(one.tensor, ())
        lstm = next((n for n in readers if _holds_cells(n, one.tensor)), None)
        if lstm is not None:
            return Range(*cell_range(lstm, self._recorded), Calibration.MINMAX)
        statistics, asked = self._statistics[one.tensor], self._options.calibration
        floor = self._floor(one.tensor)
        if statistics.low < floor - _MASKED:
            return Range(floor, max(statistics.high, floor), Calibration.MINMAX, is_floored=True)
        if asked is Calibration.AUTO and one.dtype is DType.INT16:
            asked = Calibration.MINMAX
        if asked is not Calibration.AUTO:
            return range_by(asked, statistics, one.dtype, self._options)
        names = [name for name in Calibration if name is not Calibration.AUTO]
        ranges = [range_by(name, statistics, one.dtype, self._options) for name in names]
        return min(ranges, key=lambda r: self._effect(one, r))

    def _floor(self, tensor: Tensor) -> float:
        """Return the value below which nothing counts: what masks hide from a softmax."""
        readers = self._readers.get(tensor, ())
        if tensor in self._graph.outputs or len(readers) != 1:
            return -np.inf
        reader = readers[0]
        seen = [values for values in self._recorded if tensor.name in values]
        if isinstance(reader.op, Softmax) and seen:
            tops = np.concatenate([values[tensor.name].max(axis=-1).ravel() for values in seen])
            return float(tops[tops > tops.max() - _MASKED].min()) - _NO_SHARE
        if reader.op == Add() and seen:
            other = next((t for t in reader.activations if t is not tensor), tensor)
            floor = self._floor(reader.output)
            return floor - max(float(values[other.name].max()) for values in seen)
        return -np.inf

    def _effect(self, one: Stored, chosen: Range) -> float:
        """Return the error that a range causes, as a share of the power of what is computed."""
        quant = affine(chosen.low, chosen.high, one.dtype)
        type_ = TensorType(one.tensor.shape, one.dtype, quant)
        signal, noise = 0.0, 0.0
        for values in self._seen_around(one.tensor):
            approximate = real(stored(values[one.tensor.name], type_), type_)
            for expected, actual in self._results(one.tensor, values, approximate):
                signal += float(np.square(expected, dtype=np.float64).sum())
                noise += float(np.square(actual.astype(np.float64) - expected).sum())
        return noise / signal if signal > 0 else noise

    def _results(
        self, tensor: Tensor, values: Mapping[str, Array], approximate: Array
    ) -> Iterator[tuple[Array, Array]]:
        """Yield results of floats, and those of the approximate values of a tensor.

        What a softmax reads counts itself: shares say little of scores that are far from the top.
        """
        readers = self._read_by(tensor)
        if not readers or tensor in self._graph.outputs:
            yield values[tensor.name], approximate
        for node in readers:
            inputs = [
                approximate if t is tensor else values[t.name] if t.data is None else t.data
                for t in node.inputs
            ]
            for output, actual in zip(node.outputs, evaluate(node, inputs), strict=True):
                if output.dtype is DType.FLOAT32:
                    yield values[output.name], actual

    def _seen_around(self, tensor: Tensor) -> Sequence[Mapping[str, Array]]:
        """Return values of a tensor and of what its readers read and compute, at one time each."""
        readers = self._read_by(tensor)
        near = {tensor, *(t for node in readers for t in (*node.activations, *node.outputs))}
        if self._in_loops.isdisjoint(near):
            return self._recorded
        names = {t.name for t in near}
        return [values for values in self._turns if names <= values.keys()] or self._recorded

    def _read_by(self, tensor: Tensor) -> list[Node]:
        """Return who computes with a tensor: not a softmax, nor what hands it on as it is."""
        readers = self._readers.get(tensor, ())
        return [n for n in readers if not isinstance(n.op, Softmax | Assign | PutItem | Control)]

    @cached_property
    def _in_loops(self) -> frozenset[Tensor]:
        return frozenset(t for node in nodes_in_loops(self._graph.nodes) for t in node.outputs)

    @cached_property
    def _readers(self) -> Mapping[Tensor, tuple[Node, ...]]:
        return self._graph.consumers()


def _holds_cells(node: Node, tensor: Tensor) -> bool:
    return isinstance(node.op, Lstm) and node.inputs[CELL] is tensor
