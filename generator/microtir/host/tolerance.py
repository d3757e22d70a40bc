"""Says how far a float may lie from its reference: one rule for verification, tests and projects.

Two float32 computations of one model differ by the order of their sums, which a CPU chooses. So
ours is not asked to be near another one, but to be as near to the exact value, the meaning of the
model in float64, as float32 allows: a difference is legal if

    |ours - exact| <= max(2 |reference - exact|, 8 sqrt(n) 2^-24 largest)

where n is the length of the longest sum of any layer and `largest` the largest finite magnitude of
the reference in the same output of the same sample. sqrt(n) is how rounding errors of a sum grow,
one half unit of 2^-24 each. A reference that is far from the exact value would make everything
legal; what ours is farther from than `plausible` is of another model, or of other inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from microtir.dtype import DType
from microtir.graph import reference
from microtir.graph.ir import Array, Graph, Node
from microtir.graph.macs import terms
from microtir.operators import record_of
from microtir.operators.definition import Trait

Values: TypeAlias = Mapping[str, Array]
"""Arrays of one sample by the name of the input or output."""

PLAUSIBLE = 2.0**-12  # half the bits of float32
# TFLite's kernels round the activations of each hybrid layer to 8 bits: two public models come out
# 3 % apart from themselves, by LiteRT's two kernels.
HYBRID_PLAUSIBLE = 2.0**-4

_UNIT = 2.0**-24


@dataclass(frozen=True, slots=True)
class RelativeTolerance:
    """A float may differ by `rtol` times the largest reference value, whatever is exact."""

    rtol: float

    def for_node(self, node: Node, inputs: Sequence[Array]) -> RelativeTolerance:
        """Return the tolerance of one layer, which is that of the model."""
        return self


@dataclass(frozen=True, slots=True)
class Rounding:
    """A float may differ by what float32 makes of it; see the module.

    Args:
        terms: n, the length of the longest sum.
        exact: gives the exact outputs of a sample by its number; asked only where it matters.
        is_hybrid: whether a layer has float activations and int8 weights.
    """

    terms: int
    exact: Callable[[int], Values]
    is_hybrid: bool = False

    @property
    def share(self) -> float:
        """Return what is legal whatever the reference is, as a share of the largest value."""
        return 8.0 * math.sqrt(self.terms) * _UNIT

    @property
    def plausible(self) -> float:
        """Return the share of the largest value that two computations never differ by."""
        return HYBRID_PLAUSIBLE if self.is_hybrid else PLAUSIBLE

    def for_node(self, node: Node, inputs: Sequence[Array]) -> Rounding:
        """Return the tolerance of one layer that reads `inputs`."""

        def exact(_sample: int) -> Values:
            arrays = reference.evaluate_exactly(node, inputs)
            return {tensor.name: array for tensor, array in zip(node.outputs, arrays, strict=True)}

        return Rounding(terms(node), exact)


Tolerance: TypeAlias = RelativeTolerance | Rounding


def rounding_of(graph: Graph, inputs: Sequence[Values]) -> Rounding:
    """Return the tolerance of a model for samples."""
    longest = max(map(terms, graph.nodes), default=1)
    return Rounding(
        longest, lambda sample: reference.execute_exactly(graph, inputs[sample]), is_hybrid(graph)
    )


def tolerance_of(graph: Graph, inputs: Sequence[Values], rtol: float | None) -> Tolerance:
    """Return `rtol` where a user gave one, else the rule."""
    return rounding_of(graph, inputs) if rtol is None else RelativeTolerance(rtol)


def is_hybrid(graph: Graph) -> bool:
    """Return whether a layer has float activations and int8 weights."""
    return any(
        record_of(node.op).has(Trait.WEIGHTED)
        and node.inputs[0].dtype is DType.FLOAT32
        and node.inputs[1].dtype is DType.INT8
        for node in graph.nodes
    )


@dataclass(frozen=True, slots=True)
class Judgement:
    """The wrong values of an output, and how far its reference is from the exact value.

    `reference_error` is a share of the largest value; 0 where nothing was near the limits and so
    nothing exact was computed.
    """

    wrong: Array
    reference_error: float = 0.0


def judge(expected: Array, got: Array, tolerance: Tolerance, sample: int, name: str) -> Judgement:
    """Compare an output of a sample with its reference; integers are equal or wrong."""
    same = np.asarray(expected == got)
    if expected.dtype.kind != "f":
        return Judgement(~same)
    with np.errstate(invalid="ignore", over="ignore"):
        largest = _largest(expected)
        distance = np.abs(got.astype(np.float64) - expected.astype(np.float64))
        if isinstance(tolerance, RelativeTolerance):
            return Judgement(~(same | (distance <= tolerance.rtol * largest)))
        limit = tolerance.share * largest
        # With e = |reference - exact|, |ours - exact| is at most distance + e: less than 2 e
        # if distance is less than e, else 2 distance. So half the limit needs no exact value.
        near = same | (distance <= limit / 2)
        if near.all():
            return Judgement(~near)
        exact = tolerance.exact(sample)[name].reshape(expected.shape)
        theirs = np.abs(expected - exact)
        legal = np.abs(got - exact) <= np.maximum(2 * theirs, limit)
        legal &= distance <= tolerance.plausible * largest
        finite = theirs[np.isfinite(theirs)]
        error = float(finite.max(initial=0.0)) / largest if largest else 0.0
        return Judgement(~(near | legal), error)


def largest_share(expected: Sequence[Values], tolerance: Rounding) -> float:
    """Return how far a legal output may be from these references, as a share of the largest value.

    For programs that have the references only: a device compares with them by one number.
    """
    share = tolerance.share
    for sample, outputs in enumerate(expected):
        floats = {name: array for name, array in outputs.items() if array.dtype.kind == "f"}
        exact = tolerance.exact(sample) if floats else {}
        for name, array in floats.items():
            theirs = np.abs(array - exact[name])
            finite = float(theirs[np.isfinite(theirs)].max(initial=0.0))
            largest = _largest(array)
            if largest:
                error = finite / largest
                share = max(share, error + max(2 * error, tolerance.share))
    return share


def _largest(array: Array) -> float:
    """Return the largest finite magnitude."""
    return float(np.abs(array[np.isfinite(array)]).max(initial=0.0))
