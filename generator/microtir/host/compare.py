"""When outputs are equal: the one definition, for verification, tests and reports.

Integers are equal when they are identical.  A float may differ by `rtol` times the largest
finite magnitude of the reference in the same output of the same sample: a bound per element would
ask more of the small elements of a tensor than float32 sums can give.  NaN differs from
everything, also from NaN; infinities are equal only to themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from microtir.errors import RunError
from microtir.graph.ir import Array, Graph
from microtir.graph.ops import Conv2D, DepthwiseConv2D, FullyConnected
from microtir.tir.dtype import DType

FLOAT_RTOL = 1e-5
HYBRID_RTOL = 2e-2  # activations are quantised to 8 bits inside the reference of hybrid kernels

_WEIGHTED = (Conv2D, DepthwiseConv2D, FullyConnected)

Values = Mapping[str, Array]
"""Arrays of one sample by the name of the input or output."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How one output of one sample differs; `index` is the first wrong element."""

    sample: int
    output: str
    mismatches: int
    values: int
    max_abs_error: float
    index: tuple[int, ...]
    expected: float
    got: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Outputs of several samples against a reference.

    `max_abs_error` is in stored units (quantised integers as they are), NaN if a value that
    differs is not finite.
    """

    samples: int
    values: int
    mismatches: int
    max_abs_error: float
    differences: tuple[Difference, ...]

    @property
    def equal(self) -> bool:
        return self.mismatches == 0


def is_hybrid(graph: Graph) -> bool:
    """Whether a layer has float activations and int8 weights."""
    return any(
        isinstance(node.op, _WEIGHTED)
        and node.inputs[0].dtype is DType.FLOAT32
        and node.inputs[1].dtype is DType.INT8
        for node in graph.nodes
    )


def default_rtol(graph: Graph) -> float:
    """The tolerance for floats that goes with a model."""
    return HYBRID_RTOL if is_hybrid(graph) else FLOAT_RTOL


def mismatches(expected: Array, got: Array, rtol: float) -> Array:
    """Booleans of the shape of `expected`: where `got` differs from it."""
    if expected.dtype.kind != "f":
        return np.asarray(expected != got)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(got.astype(np.float64) - expected.astype(np.float64))
        finite = np.abs(expected[np.isfinite(expected)])
        limit = rtol * float(finite.max(initial=0.0))
        return np.asarray(~((error <= limit) | (expected == got)))


def compare(expected: Sequence[Values], got: Sequence[Values], rtol: float) -> Comparison:
    """Compare all outputs of all samples.

    Args:
        expected: per sample the reference outputs by name.
        got: the same outputs of the same samples.
        rtol: for floats, see the module.

    Raises:
        RunError: an output is missing or has another shape or type than the reference.
    """
    values = wrong = 0
    worst = 0.0
    differences = []
    for sample, (reference, outputs) in enumerate(zip(expected, got, strict=True)):
        for name, array in reference.items():
            found = outputs.get(name)
            if found is None or found.shape != array.shape or found.dtype != array.dtype:
                raise RunError(
                    f"got {_described(found)}, the reference has {_described(array)}",
                    where=f"output '{name}' of sample {sample}",
                )
            difference = _difference(sample, name, array, found, rtol)
            values += array.size
            worst = _larger(worst, max_abs_error(array, found))
            if difference is not None:
                wrong += difference.mismatches
                differences.append(difference)
    return Comparison(len(expected), values, wrong, worst, tuple(differences))


def max_abs_error(expected: Array, got: Array) -> float:
    """The largest absolute difference; NaN if a value differs and one of the two is not finite."""
    differs = np.asarray(~(expected == got))
    if not differs.any():
        return 0.0
    wide = np.float64 if expected.dtype.kind == "f" else np.dtype(object)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(got[differs].astype(wide) - expected[differs].astype(wide))
    largest = float(error.max())
    return largest if np.isfinite(largest) else float("nan")


def _difference(
    sample: int, name: str, expected: Array, got: Array, rtol: float
) -> Difference | None:
    differs = mismatches(expected, got, rtol)
    if not differs.any():
        return None
    index = tuple(int(i) for i in np.argwhere(differs)[0])
    return Difference(
        sample=sample,
        output=name,
        mismatches=int(differs.sum()),
        values=expected.size,
        max_abs_error=max_abs_error(expected, got),
        index=index,
        expected=expected[index].item(),
        got=got[index].item(),
    )


def _larger(a: float, b: float) -> float:
    """The maximum, NaN if one of them is."""
    return a if np.isnan(a) or a >= b else b


def _described(array: Array | None) -> str:
    return "nothing" if array is None else f"{array.dtype} {array.shape}"
