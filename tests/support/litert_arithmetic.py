"""Graphs as LiteRT computes them, where its kernels round otherwise than tflite-micro's.

Found by comparing layers, and written out here: what a golden file of LiteRT holds follows from a
graph to the bit, and nothing else differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from enum import Enum
from unittest import mock

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Graph, Node, Tensor
from microtir.operators.common import linear_meaning
from microtir.operators.common.arrays import Doubles
from microtir.operators.common.fixed_point import (
    Ints,
    saturating_rounding_doubling_high_mul,
    wrap,
)
from microtir.operators.common.linear import LinearParams, multiplier_arrays
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.softmax import meaning as softmax_meaning
from microtir.operators.softmax.definition import Softmax
from microtir.rewrite.reference.evaluate import evaluate, value_of
from microtir.rewrite.reference.order import in_order


class LitertKernels(Enum):
    """Which kernels an interpreter of LiteRT was given."""

    REFERENCE = "BUILTIN_REF"
    OPTIMISED = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"


def execute_as_litert(
    graph: Graph, inputs: Mapping[str, Array], kernels: LitertKernels
) -> dict[str, Array]:
    """Run a graph with the roundings of LiteRT."""
    values: dict[Tensor, Array] = {tensor: inputs[tensor.name] for tensor in graph.inputs}
    for node in in_order(graph, values):
        with rounding_as_litert(node, kernels):
            outputs = evaluate(node, [value_of(tensor, values) for tensor in node.inputs])
        values.update(zip(node.outputs, outputs, strict=True))
    return {tensor.name: value_of(tensor, values) for tensor in graph.outputs}


def differs_in_litert(node: Node, kernels: LitertKernels) -> bool:
    """Return whether LiteRT rounds a node's results otherwise."""
    data = node.inputs[0].dtype if node.inputs else DType.FLOAT32
    if data not in (DType.INT8, DType.INT16):
        return False
    if isinstance(node.op, Softmax):
        return data is DType.INT16
    if isinstance(node.op, FullyConnected):
        return True
    optimised = kernels is LitertKernels.OPTIMISED
    return optimised and isinstance(node.op, Conv2D) and data is DType.INT8


@contextmanager
def rounding_as_litert(node: Node, kernels: LitertKernels) -> Iterator[None]:
    """Have the meaning of a node round as LiteRT does."""
    with ExitStack() as stack:
        if differs_in_litert(node, kernels):
            if isinstance(node.op, Softmax):
                table = mock.patch.object(softmax_meaning, "reciprocal_table", _reciprocals)
                stack.enter_context(table)
            else:
                optimised = kernels is LitertKernels.OPTIMISED and node.inputs[0].dtype.bits == 8
                rescale = _ties_up if optimised else _in_double(node)
                stack.enter_context(mock.patch.object(linear_meaning, "requantized", rescale))
        yield


def _in_double(node: Node) -> Callable[[Ints, LinearParams, bool], Ints]:
    """Return how the reference kernel scales sums: by a double."""
    features, weights = (tensor.type.quant for tensor in node.inputs[:2])
    output = node.output.type.quant
    factors = features.scale * np.array(weights.scales, np.float64) / output.scale

    def rescale(sums: Ints, params: LinearParams, _is_long: bool) -> Ints:
        return _clamped(_rounded(sums.astype(np.float64) * factors).astype(np.int64), params)

    return rescale


def _ties_up(sums: Ints, params: LinearParams, _is_long: bool) -> Ints:
    """Scale sums as the optimised matrix products do, whose second rounding takes ties up."""
    multipliers, shifts = multiplier_arrays(params.multipliers, sums.shape[-1])
    high = saturating_rounding_doubling_high_mul(wrap(sums << np.maximum(shifts, 0)), multipliers)
    right = np.maximum(-shifts, 0)
    return _clamped(np.asarray((high + (np.int64(1) << right >> 1)) >> right), params)


def _clamped(scaled: Ints, params: LinearParams) -> Ints:
    shifted = scaled + params.output_zero_point
    return np.clip(shifted, params.activation_min, params.activation_max)


def _reciprocals() -> Array:
    """Return the table of 1 / (1 + x) that SOFTMAX of int16 reads, each step of it in double."""
    inverse = float(1 << (DType.INT16.bits - 1))  # results of -1 to 1 in 65,536 steps
    at = np.arange(513) / 512
    line = inverse / (1 + at)
    begin = _rounded(line[:-1])
    middle = _rounded(inverse / (1 + at[:-1] + 0.5 / 512))
    entries = begin - _rounded((_rounded((line[1:] + begin) / 2) - middle) / 2)
    table = np.append(entries, _rounded(line[-1:]))
    return np.asarray(np.clip(table, DType.INT16.min, DType.INT16.max), np.int16)


def _rounded(real: Doubles) -> Doubles:
    """Round to nearest, halves away from 0, as C's `round`."""
    return np.asarray(np.copysign(np.floor(np.abs(real) + 0.5), real))
