"""Small ONNX models as real exporters write them, each against its golden file."""

from __future__ import annotations

from pathlib import Path

import pytest

from microtir.host.tolerance import RelativeTolerance, Tolerance, rounding_of
from microtir.host.verify import verify
from tests.models.test_models import compile_model
from tests.support.model_gate import find_models

FOLDER = "exported"

HALVES = frozenset({"unet_resize_ort_qdq_s8_channel"})
"""Models that quantise halves: means of stored values lie between two integers.

Which of them is nearer follows from the order of float32 products, which ONNX leaves open and
onnxruntime has otherwise: a value may differ by one step of its scale.
"""


def names() -> list[str]:
    """Return the models of the folder, none where there is no folder."""
    models = find_models(Path(__file__).parents[2])
    return sorted(path.stem for path in (models / FOLDER).glob("*.onnx")) if models else []


EACH = [pytest.param(name, marks=pytest.mark.model(f"{FOLDER}/{name}")) for name in names()]


@pytest.mark.parametrize("name", EACH)
def test_equals_its_golden_file(models_dir: Path, name: str) -> None:
    """Floats are as near to the exact values as float32 allows."""
    model = compile_model(models_dir / FOLDER, name, ".onnx")
    tolerance: Tolerance = rounding_of(model.graph, model.inputs.values)
    if name in HALVES:
        tolerance = RelativeTolerance(1 / 100)
    verdict = verify(model.artifact, model.planned, model.inputs, model.expected, tolerance)
    assert verdict.equal, verdict.to_dict()
