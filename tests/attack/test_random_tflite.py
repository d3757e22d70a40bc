"""Random TFLite graphs over all operators and types: C, numpy and tflite-micro give one result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

from microtir.errors import UnsupportedModelError
from microtir.rewrite.reference import execute
from tests.attack.joined import Step, draw_steps, join
from tests.attack.shrink import attack_and_shrink
from tests.attack.targets import config_of
from tests.execute.cases import compare
from tests.support.c_compilers import STRICT
from tests.support.operator_cases import HYBRID, operator_dtypes
from tests.support.seeds import seeds
from tests.support.sketch import Case
from tests.support.tflm import run_tflm

pytestmark = pytest.mark.tools

SEEDS = seeds(0, 16)


def equals_tflm(case: Case, steps: Sequence[Step]) -> None:
    """Compare numpy with tflite-micro, which counts where it has all of the operators."""
    if not all(step.is_compared_with_tflm for step in steps):
        return
    try:
        expected = run_tflm(case.model, *case.inputs, outputs=case.outputs)
    except RuntimeError:  # what it refuses that the file format allows
        return
    results = execute(case.graph(), case.named_inputs()).values()
    for got, want in zip(results, expected, strict=True):
        if np.issubdtype(want.dtype, np.floating):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * max(1, np.abs(want).max()))
        else:
            np.testing.assert_array_equal(got, want)


def attack(steps: Sequence[Step], folder: Path) -> None:
    """Compare the results of one graph; a refusal in words is no failure.

    Raises:
        AssertionError: two results differ.
    """
    case = join("attacked", steps)
    try:
        case.graph()
    except UnsupportedModelError:
        return
    equals_tflm(case, steps)
    # A library that is loaded cannot be written again.
    compare([case], Path(mkdtemp(dir=folder)), STRICT, config_of(steps[0].seed >> 4))


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
def test_random_graphs(seed: int, tmp_path: Path) -> None:
    """Results are equal; if not, the smallest graph that fails is named and its file kept."""
    attack_and_shrink(
        draw_steps(seed),
        lambda steps: attack(steps, tmp_path),
        lambda fewer: join("attacked", fewer).model,
        f"graph{seed}.tflite",
    )


def test_all_operators_are_drawn() -> None:
    """A night's seeds reach every operator with every type, and most inputs are joined."""
    drawn = {(step.operator, step.dtype) for seed in range(4000) for step in draw_steps(seed)}
    assert drawn == {(name, dtype) for name, dtype in operator_dtypes() if dtype != HYBRID}
    joined = [join("one", draw_steps(seed)) for seed in range(40)]
    nodes = sum(len(case.graph().nodes) for case in joined if not _is_refused(case))
    assert nodes > 8 * len(joined)


def _is_refused(case: Case) -> bool:
    try:
        case.graph()
    except UnsupportedModelError:
        return True
    return False
