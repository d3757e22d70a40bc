"""Networks that join their way down with their way up: little more than must live at once."""

from __future__ import annotations

from pathlib import Path

import pytest

import microtir
from microtir import frontend, host
from microtir.config import CompilationConfig, Optimize
from scripts.models.shapes import unet_like
from tests.support.small_models import reference_outputs, sample_inputs

JOINED = 2 * 32 * 32 * 16  # bytes of the largest concatenation and of what it joins


@pytest.mark.parametrize("targets", ["c", "c -mcpu=cortex-m4", "c -mcpu=cortex-m55"])
def test_a_joined_level_lies_over_what_is_joined(targets: str, tmp_path: Path) -> None:
    """Rows of both inputs are read in turns: one input after the other would take all of it."""
    path = tmp_path / "unet.tflite"
    path.write_bytes(unet_like(32, 8, 2))
    module = frontend.from_tflite(path)
    config = CompilationConfig(targets=targets, optimize=Optimize.RAM_LEAST)
    artifact = microtir.build(module, config)
    memory = artifact.metadata.memory
    assert memory is not None
    assert memory.workspace_size < 0.9 * JOINED
    assert memory.gap < 0.01 * JOINED
    if targets == "c":
        assert module.graph is not None
        inputs = sample_inputs(module.graph)
        outputs = host.load(artifact).run(inputs)
        for name, expected in reference_outputs(module.graph, inputs).items():
            assert (outputs[name] == expected).all()
