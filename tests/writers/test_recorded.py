"""The record of all written files: its figures are those of the page, and some come out anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.written import EQUAL, RECORDED, WIDTHS, verdicts

PAGE = Path(__file__).resolve().parents[2] / "docs" / "quantise.md"
# Models of which references run each file, refuse one, differ in one, or get none.
AGAIN = (
    "act_gelu_swish_mish_float32.tflite", "control_if_float32.tflite", "onnx_lstm_forward.onnx",
    "torch_mlp.onnx",
)  # fmt: skip


def test_the_page_has_the_recorded_figures() -> None:
    """How many files each reference has kernels for, and of how many it gives the bits."""
    counts = json.loads(RECORDED.read_text("utf-8"))["counts"]
    micro, litert = counts["tflite-micro"], counts["LiteRT"]
    ours, theirs = (each["equal"] + each.get("values differ", 0) for each in (micro, litert))
    text = " ".join(PAGE.read_text("utf-8").split())
    assert sum(micro.values()) == sum(litert.values())
    assert f"has the kernels for {ours} of {sum(micro.values())} files" in text
    equal = "all" if ours == micro["equal"] else micro["equal"]
    assert f"gives the same bits for {equal} of these" in text
    assert f"for {theirs} files and, with `numerics=tflite_ref`, gives the same bits for" in text
    assert f"same bits for {litert['equal']}. The other {litert['values differ']} are" in text


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.model(f"exported/{n.rpartition('.')[0]}")) for n in AGAIN],
)
def test_verdicts_are_those_of_the_record(models_dir: Path, name: str) -> None:
    """A change of the writer or of the quantiser that a reference notices needs a new record."""
    recorded = json.loads(RECORDED.read_text("utf-8"))["not equal"]
    for width, kind in WIDTHS.items():
        found = verdicts(models_dir / "exported" / name, kind)
        odd = {one: verdict for one, verdict in found.items() if verdict != EQUAL}
        assert odd == recorded.get(f"{name} {width}", {})
