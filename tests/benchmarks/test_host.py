"""The recorded ratios of the host, and the models that onnxruntime is given."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

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


def test_figures_name_their_cpu() -> None:
    """A record of "x86-64 with AVX2" said nothing: ratios of a CPU with VNNI are others."""
    text = "vendor_id\t: X\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: A CPU\nstepping\t: 2\n"
    flags = "flags\t\t: fpu avx2 avx512f avx512_vnni\n"
    assert host.cpu_of(text + flags + text.replace("A CPU", "another core")) == (
        "A CPU (cpu family 25, model 1, stepping 2), avx2 avx512f avx512_vnni"
    )
    assert host.cpu_of(text).endswith("stepping 2), no vectors")
    with pytest.raises(SystemExit, match="need the CPU's name"):
        host.cpu_of(flags)


def test_pages_name_the_cpu_of_the_record() -> None:
    """Ratios on a page stand beside the name of the CPU that they are of."""
    root = Path(__file__).parents[2]
    names = {machine.split(",")[0].split(" (")[0] for machine in host.read_recorded()}
    for page in ("docs/figures.md", "docs/host.md"):
        text = (root / page).read_text("utf-8")
        assert all(name in text for name in names), page
