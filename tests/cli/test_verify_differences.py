"""What `verify` says where outputs differ although the C computes what it should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from microtir.operators.common.tflite_schema import BuiltinOperator
from tests.frontend.models import Value, model
from tests.support.command import Command
from tests.support.stateful import running_sum


def test_runs_in_a_row_without_an_axis_of_steps(microtir: Command, tmp_path: Path) -> None:
    """It was said that the reference is of another model: the file lacks an axis."""
    path = tmp_path / "sum.tflite"
    path.write_bytes(running_sum())
    x = np.arange(8, dtype=np.float32).reshape(4, 1, 2)
    sums = 2 * (np.cumsum(x, 0) - x)
    np.savez(tmp_path / "rows.npz", inputs=x, outputs=sums)
    np.savez(tmp_path / "sequence.npz", inputs=x[None], outputs=sums[None])
    result = microtir("verify", path, "--golden", tmp_path / "rows.npz")
    assert result.status == 1
    assert "each sample is a run that begins anew" in result.out
    assert "of the shape (1, 4, ...) in the place of (4, ...)" in result.out
    assert microtir("verify", path, "--golden", tmp_path / "sequence.npz").status == 0


@pytest.mark.parametrize(("scale", "is_known"), [(1e-4, True), (0.5, False)])
def test_quotients_that_references_shift_too_far_are_named(
    microtir: Command, tmp_path: Path, scale: float, is_known: bool
) -> None:
    """A golden file that holds what a processor made of such a shift differs by name."""
    x, divisor, y = (
        Value((4,), np.int8, None, (step,), (0,)) for step in (scale, 0.01, 0.004)
    )  # fmt: skip
    path = tmp_path / "div.tflite"
    path.write_bytes(model(BuiltinOperator.DIV, [x, divisor], y))
    given: dict[str, Any] = {
        "inputs.x0": np.ones((1, 4), np.int8),
        "inputs.x1": np.full((1, 4), 9, np.int8),
    }
    np.savez(tmp_path / "golden.npz", outputs=np.full((1, 4), 99, np.int8), **given)
    result = microtir("verify", path, "--golden", tmp_path / "golden.npz")
    assert result.status == 1
    assert ("DIV 'y0': where a numerator is small" in result.out) is is_known


@pytest.mark.parametrize(("scale", "is_known"), [(0.5, True), (0.05, False)])
def test_exponentials_that_c_leaves_undefined_are_named(
    microtir: Command, tmp_path: Path, scale: float, is_known: bool
) -> None:
    """A golden file that holds what a compiler made of an infinity differs by name."""
    x, y = (Value((4,), np.int8, None, (step,), (0,)) for step in (scale, 0.9))
    path = tmp_path / "exp.tflite"
    path.write_bytes(model(BuiltinOperator.EXP, [x], y))
    golden = tmp_path / "golden.npz"
    np.savez(golden, inputs=np.full((1, 4), 127, np.int8), outputs=np.full((1, 4), -128, np.int8))
    result = microtir("verify", path, "--golden", golden)
    assert result.status == 1
    assert ("EXP 'y0': where a result is too large" in result.out) is is_known
