"""RAM of the reference models at `--optimize ram`: goals met, and the golden outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, frontend, host
from microtir.host.samples import read_golden

# Model, whether inputs and outputs lie in the workspace, bytes of workspace, inputs and outputs.
GOALS = [
    ("ad01_int8", False, 2100),
    ("ad01_int8", True, 800),
    ("kws_int8", False, 6500),
    ("resnet8_int8", False, 16400),
    ("strww_int8", False, 4200),
    ("vww_int8", True, 28400),
]
EACH = [pytest.param(*goal, marks=pytest.mark.model(goal[0])) for goal in GOALS]


@pytest.mark.parametrize(("name", "workspace_io", "goal"), EACH)
def test_ram_goal(models_dir: Path, name: str, workspace_io: bool, goal: int) -> None:
    """Streamed, placed, checked, and the same to the bit whatever the workspace held before."""
    config = CompilationConfig(
        targets="c",
        module_name=name,
        optimize="ram-least",
        pass_config={"memory.use_workspace_io": workspace_io},
    )
    module = frontend.from_tflite(models_dir / f"{name}.tflite")
    artifact = microtir.build(module, config)
    model = artifact.module.model
    assert model is not None and model.memory.verified
    apart = sum(port.type.bytes for port in model.ports if port.offset is None)
    assert model.memory.workspace_size + apart <= goal
    loaded = host.load(artifact)
    inputs, expected = read_golden(models_dir / f"{name}.golden.npz", model)
    for fill in (0xA5, 0x5A):
        got = loaded.run(inputs.values[0], fill_workspace=fill)
        for key, values in expected.values[0].items():
            np.testing.assert_array_equal(got[key], values)


@pytest.mark.model("vww_int8")
def test_vww_in_bands(models_dir: Path) -> None:
    """A tenth more work at most takes a fifth off the workspace, and every output stays."""
    config = CompilationConfig(
        targets="c",
        module_name="vww_int8",
        optimize="ram-least",
        pass_config={"memory.recompute": 10},
    )
    artifact = microtir.build(frontend.from_tflite(models_dir / "vww_int8.tflite"), config)
    model, layers = artifact.module.model, artifact.metadata.layers
    assert model is not None and model.memory.verified
    assert model.memory.workspace_size <= 10_752  # 13,440 in whole rows
    executed, again = (
        sum(layer.macs_executed for layer in layers),
        sum(layer.macs_recomputed for layer in layers),
    )
    assert 0 < again <= (executed - again) / 10
    inputs, expected = read_golden(models_dir / "vww_int8.golden.npz", model)
    got = host.load(artifact).run(inputs.values[0], fill_workspace=0xA5)
    for key, values in expected.values[0].items():
        np.testing.assert_array_equal(got[key], values)
