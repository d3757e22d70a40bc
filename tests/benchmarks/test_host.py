"""The recorded ratios of the host, and the models that onnxruntime is given."""

from __future__ import annotations

from benchmarks import host
from benchmarks.boards import INT8_MODELS


def test_recorded_ratios_are_complete_and_reach_the_goal() -> None:
    """Every model is equal to golden and not slower than onnxruntime, on each recorded machine."""
    recorded = host.read_recorded()
    assert recorded, "run `python -m benchmarks host --record`"
    for machine, rows in recorded.items():
        assert set(rows) == set(INT8_MODELS), machine
        for model, row in rows.items():
            assert row.difference == 0, (machine, model)
            assert row.to_onnxruntime <= 1.0, (machine, model)
