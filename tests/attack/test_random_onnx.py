"""Random ONNX graphs over operators of floats: C and numpy give what onnxruntime gives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

import microtir
from microtir.errors import UnsupportedModelError
from microtir.frontend import from_onnx
from microtir.rewrite.reference import execute
from tests.attack.onnx_graphs import RECIPES, OnnxCase, OnnxStep, draw_onnx_steps, join_onnx
from tests.attack.shrink import attack_and_shrink
from tests.attack.targets import config_of
from tests.support.batch import load_batch
from tests.support.c_compilers import STRICT
from tests.support.onnx_models import Array, run_onnxruntime
from tests.support.seeds import seeds

pytestmark = pytest.mark.tools

SEEDS = seeds(0, 16)


def close(got: Array, want: Array, what: str) -> None:
    """Compare floats of graphs that do not let a difference grow."""
    assert got.shape == want.shape, what
    largest = max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0)))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * largest, err_msg=what)


def attack(case: OnnxCase, seed: int, folder: Path) -> None:
    """Compare the results of one graph; a refusal in words is no failure.

    Raises:
        AssertionError: two results differ.
    """
    expected = run_onnxruntime(case.model, case.inputs)
    try:
        module = from_onnx(case.model, name="attacked")
    except UnsupportedModelError:
        return
    assert module.graph is not None
    results = execute(module.graph, case.inputs)
    config = config_of(seed).with_(module_name="attacked")
    # A library that is loaded cannot be written again.
    folder = Path(mkdtemp(dir=folder))
    (model,) = load_batch([microtir.build(module, config)], folder, flags=STRICT)
    computed = model.run(dict(case.inputs))
    for (name, numpy), want in zip(results.items(), expected, strict=True):
        close(numpy, want, f"{name} in numpy")
        close(computed[name], want, f"{name} in C")


def attack_steps(steps: Sequence[OnnxStep], folder: Path) -> None:
    """Draw a graph, and compare."""
    attack(join_onnx(steps), steps[0].seed >> 4, folder)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
def test_random_graphs(seed: int, tmp_path: Path) -> None:
    """Results are close; if not, the smallest graph that fails is named and its file kept."""
    attack_and_shrink(
        draw_onnx_steps(seed),
        lambda steps: attack_steps(steps, tmp_path),
        lambda fewer: join_onnx(fewer).model,
        f"graph{seed}.onnx",
    )


def test_all_operators_are_drawn() -> None:
    """A night's seeds reach every operator."""
    drawn = {step.operator for seed in range(400) for step in draw_onnx_steps(seed)}
    assert drawn == set(RECIPES)
