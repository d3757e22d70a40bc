"""Compares outputs with a reference, and counts and describes differences.

Integers are equal when they are identical; `tolerance` says it of floats.  NaN differs from
everything, also from NaN; infinities are equal only to themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from microtir.errors import RunError
from microtir.graph.ir import Array
from microtir.host.tolerance import Judgement, Tolerance, Values, judge


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference in one output of one run; `index` is the first wrong element.

    The run is the step of that number in a sample that is a sequence, and a whole sample else.
    """

    sample: int
    output: str
    mismatches: int
    values: int
    max_abs_error: float
    index: tuple[int, ...]
    expected: float
    got: float
    step: int | None = None

    @property
    def place(self) -> str:
        """Return the run in words."""
        return f"sample {self.sample}" + (f", step {self.step}" if self.step is not None else "")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Outputs of several samples against a reference, each of so many `steps` if of any.

    `max_abs_error` is in stored units (quantised integers as they are), NaN if a value that
    differs is not finite. `reference_error` is how far the reference itself is from the exact
    values, a share of an output's largest value, where that was looked at.
    """

    samples: int
    values: int
    mismatches: int
    max_abs_error: float
    differences: tuple[Difference, ...]
    reference_error: float = 0.0
    steps: int | None = None

    @property
    def equal(self) -> bool:
        return self.mismatches == 0

    def differs_by_one(self, outputs: Collection[str]) -> bool:
        """Return whether values differ, all of them in these outputs and by one."""
        return not self.equal and all(
            difference.output in outputs and difference.max_abs_error == 1
            for difference in self.differences
        )


def compare(
    expected: Sequence[Values],
    got: Sequence[Values],
    tolerance: Tolerance,
    steps: int | None = None,
) -> Comparison:
    """Compare all outputs of all samples.

    Args:
        expected: per run the reference outputs by name.
        got: the same outputs of the same runs.
        tolerance: for floats.
        steps: how many runs a sample has that is a sequence.

    Raises:
        RunError: an output is missing or has another shape or type than the reference.
    """
    values = wrong = 0
    worst = rough = 0.0
    differences = []
    for run, (reference, outputs) in enumerate(zip(expected, got, strict=True)):
        sample, step = (run, None) if steps is None else divmod(run, steps)
        for name, array in reference.items():
            actual = outputs.get(name)
            if actual is None or actual.shape != array.shape or actual.dtype != array.dtype:
                of_step = "" if step is None else f"step {step} of "
                raise RunError(
                    f"got {_described(actual)}, the reference has {_described(array)}",
                    where=f"output '{name}' of {of_step}sample {sample}",
                )
            judgement = judge(array, actual, tolerance, run, name)
            difference = _difference((sample, step), name, array, actual, judgement)
            rough = max(rough, judgement.reference_error)
            values += array.size
            worst = _larger(worst, max_abs_error(array, actual))
            if difference is not None:
                wrong += difference.mismatches
                differences.append(difference)
    samples = len(expected) // (steps or 1)
    return Comparison(samples, values, wrong, worst, tuple(differences), rough, steps)


def max_abs_error(expected: Array, got: Array) -> float:
    """Return the largest absolute difference; NaN where only one value of a pair is finite."""
    differs = np.asarray(~(expected == got))
    if not differs.any():
        return 0.0
    wide = np.float64 if expected.dtype.kind == "f" else np.dtype(object)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(got[differs].astype(wide) - expected[differs].astype(wide))
    largest = float(error.max())
    return largest if np.isfinite(largest) else float("nan")


def _difference(
    place: tuple[int, int | None], name: str, expected: Array, got: Array, judgement: Judgement
) -> Difference | None:
    differs = judgement.wrong
    if not differs.any():
        return None
    index = tuple(int(i) for i in np.argwhere(differs)[0])
    return Difference(
        sample=place[0],
        output=name,
        mismatches=int(differs.sum()),
        values=expected.size,
        max_abs_error=max_abs_error(expected, got),
        index=index,
        expected=expected[index].item(),
        got=got[index].item(),
        step=place[1],
    )


def _larger(a: float, b: float) -> float:
    """Return the maximum, NaN if one of them is."""
    return a if np.isnan(a) or a >= b else b


def _described(array: Array | None) -> str:
    return "nothing" if array is None else f"{array.dtype} {array.shape}"
