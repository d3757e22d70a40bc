"""Programs that `torch.export.save` wrote give what PyTorch gave for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from microtir.host.tolerance import rounding_of
from microtir.host.verify import verify
from tests.models.test_models import compile_model

TORCH = "torch"

NAMES = ("cnn", "cnn_batch", "cnn_pt2e_int8", "cnn_pt2e_tensor", "cnn_pt2e_uint8")


EACH = [pytest.param(name, marks=pytest.mark.model(f"{TORCH}/{name}")) for name in NAMES]


@pytest.mark.parametrize("name", EACH)
def test_golden_outputs(models_dir: Path, name: str) -> None:
    """Outputs of each run are as near to the exact values as sums of floats are."""
    model = compile_model(models_dir / TORCH, name, suffix=".pt2")
    tolerance = rounding_of(model.graph, model.inputs.values)
    verdict = verify(model.artifact, model.planned, model.inputs, model.expected, tolerance)
    assert verdict.equal, verdict.to_dict()
