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
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from microtir.config import Numerics
from microtir.dtype import DType
from microtir.graph.ir import Array, Graph, Node
from microtir.operators.block_dense.definition import rounds_rows
from microtir.operators.hybrid.definition import Hybrid
from microtir.rewrite import reference
from microtir.rewrite.facts.macs import macs, terms
from microtir.rewrite.requests.numerics import made_for

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
        exact: gives the exact outputs of a run by its number; asked only where it matters.
        is_hybrid: whether a layer has float activations and int8 weights.
        is_pt2e: whether the reference computes in floats what is stored in 8 bits between layers.
    """

    terms: int
    exact: Callable[[int], Values]
    is_hybrid: bool = False
    is_pt2e: bool = False

    @property
    def share(self) -> float:
        """Return what is legal whatever the reference is, as a share of the largest value."""
        return 8.0 * math.sqrt(self.terms) * _UNIT

    @property
    def plausible(self) -> float:
        """Return the share of the largest value that two computations never differ by."""
        return HYBRID_PLAUSIBLE if self.is_hybrid or self.is_pt2e else PLAUSIBLE

    def for_node(self, node: Node, inputs: Sequence[Array]) -> Rounding:
        """Return the tolerance of one layer that reads `inputs`."""

        def exact(_sample: int) -> Values:
            arrays = reference.evaluate_exactly(node, inputs)
            return {tensor.name: array for tensor, array in zip(node.outputs, arrays, strict=True)}

        return Rounding(terms(node), exact)


Tolerance: TypeAlias = RelativeTolerance | Rounding


def rounding_of(graph: Graph, inputs: Sequence[Values], steps: int | None = None) -> Rounding:
    """Return the tolerance of a model for runs.

    Args:
        graph: the model.
        inputs: of each run.
        steps: how many of them, one after another, are a sequence.  The rounding errors of each go
            into the state, and so into all that follow: a sum goes on over them.
    """
    is_pt2e = made_for(graph) is Numerics.PT2E
    longest = max(map(terms, graph.nodes), default=1) * (steps or 1)
    return Rounding(longest, ExactRuns(graph, inputs, steps or 1), is_hybrid(graph), is_pt2e)


def tolerance_of(
    graph: Graph, inputs: Sequence[Values], rtol: float | None, steps: int | None = None
) -> Tolerance:
    """Return `rtol` where a user gave one, else the rule."""
    return rounding_of(graph, inputs, steps) if rtol is None else RelativeTolerance(rtol)


@dataclass(slots=True)
class ExactRuns:
    """The exact outputs of runs, by number; those of a sequence are computed up to the one asked.

    By the names of the arguments of `rounding_of`.
    """

    graph: Graph
    inputs: Sequence[Values]
    steps: int
    _known: dict[int, list[Values]] = field(default_factory=dict)  # of the sequence of each sample

    def __call__(self, run: int) -> Values:
        """Return the outputs of a run."""
        sample, step = divmod(run, self.steps)
        known = self._known.setdefault(sample, [])
        for number in range(run - step + len(known), run + 1):
            without_sums = {
                s.before.name: known[-s.turns][s.after.name]
                for s in self.graph.states
                if len(known) >= s.turns
            }
            outputs = reference.execute_exactly(self.graph, {**self.inputs[number], **without_sums})
            known.append(outputs)
        return known[step]


def is_hybrid(graph: Graph) -> bool:
    """Return whether a layer has float activations and int8 weights."""
    return any(
        isinstance(node.op, Hybrid)
        or rounds_rows(node)
        or (
            macs(node) > 0
            and node.inputs[0].dtype is DType.FLOAT32
            and any(tensor.dtype is DType.INT8 for tensor in node.inputs[1:])
        )
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


def judge(expected: Array, got: Array, tolerance: Tolerance, run: int, name: str) -> Judgement:
    """Compare an output of a run with its reference; integers are equal or wrong."""
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
        exact = tolerance.exact(run)[name].reshape(expected.shape)
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
    for run, outputs in enumerate(expected):
        floats = {name: array for name, array in outputs.items() if array.dtype.kind == "f"}
        exact = tolerance.exact(run) if floats else {}
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
