"""The recorded ratios of the host, and the models that onnxruntime is given."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from benchmarks import host
from benchmarks.boards import INT8_MODELS
from benchmarks.qdq import UntranslatedError


def test_recorded_ratios_are_complete_and_reach_the_goal() -> None:
    """Every model is equal to golden and not slower than onnxruntime, on each recorded machine."""
    recorded = host.read_recorded()
    assert recorded, "run `python -m benchmarks host --record`"
    for machine, rows in recorded.items():
        assert set(rows) == set(INT8_MODELS), machine
        for model, row in rows.items():
            assert row.difference == 0, (machine, model)
            assert row.to_onnxruntime <= 1.0, (machine, model)


def test_a_model_without_an_onnx_form_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its name and the operator are said, and the others are measured."""
    figures = host.HostFigures(0.5, 0.5, 0, 1, 1, 1)

    def measure(model: str) -> host.HostFigures:
        if model == INT8_MODELS[0]:
            raise UntranslatedError("MEAN 'm': no translation to ONNX here")
        return figures

    monkeypatch.setattr(host, "measure", measure)
    monkeypatch.setattr(host, "rivals", nullcontext)
    (rows,) = host.measure_all([]).values()
    assert rows == dict.fromkeys(INT8_MODELS[1:], figures)
    said = f"{INT8_MODELS[0]:<14} skipped: MEAN 'm': no translation to ONNX here"
    assert said in capsys.readouterr().out.splitlines()
