"""Many artifacts in one shared library."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from microtir import host
from tests.support.batch import load_batch
from tests.support.programs import artifact_of, config, image, matmul_module, model_module


def test_batch_is_the_same_as_one_by_one(tmp_path: Path) -> None:
    """Programs that use the same helpers work side by side in one library."""
    artifacts = [artifact_of(model_module(config(f"m{n}"), rows_at_once=n)) for n in (1, 2, 4)]
    artifacts.append(artifact_of(matmul_module()))
    *models, program = load_batch(artifacts, tmp_path)
    expected = host.load(artifact_of(model_module())).run({"image": image()})["scores"]
    for model in models:
        assert np.array_equal(model.run({"image": image()})["scores"], expected)
    a, b = np.ones((2, 4), np.float32), np.ones((4, 3), np.float32)
    c = np.zeros((2, 3), np.float32)
    program["matmul"](a, b, c, 2)
    assert (c == 4).all()


def test_names_must_differ(tmp_path: Path) -> None:
    """Two artifacts of the same name cannot be in one batch."""
    with pytest.raises(AssertionError, match="its own module name"):
        load_batch([artifact_of(model_module())] * 2, tmp_path)
