"""Small models as real exporters write them, each on an emulated board against its golden file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from microtir.boards import load_board
from microtir.config.enums import Optimize
from microtir.graph.ir import Array
from microtir.host.samples import SampleBatch
from microtir.projects import run_samples
from tests.models.test_exported import EACH, check_golden, names
from tests.models.test_models import compile_model
from tests.support.model_gate import EXPORTED

BOARD = "mps2_an386"
# What a model computes in floats is tested on this machine; of those that are there in integers,
# too, these show that the board does the same.  The soak has all.
FLOATS = ("lstm_fused_float32", "mobilenet_float32", "transformer_tokens_float16")


def on_board() -> list[object]:
    """Return every model; those that only have floats for integers are marked for the soak."""
    families = {name.removesuffix("_int8") for name in names() if name.endswith("_int8")}
    return [
        pytest.param(name, marks=[*each.marks, pytest.mark.soak_only])
        if name not in FLOATS and has_floats(name, families)
        else each
        for name, each in zip(names(), EACH, strict=True)
    ]


def has_floats(name: str, families: Collection[str]) -> bool:
    """Return whether a model is one of `families` with weights or values in floats."""
    family, _, kind = name.rpartition("_")
    return family in families and kind in ("float16", "float32", "hybrid")


@pytest.mark.parametrize("name", on_board())
def test_equals_its_golden_file_on_a_board(models_dir: Path, name: str) -> None:
    """The fastest kernels of a Cortex-M4 give what the host gives: floats as near."""
    board = load_board(BOARD)
    model = compile_model(models_dir / EXPORTED, name, target=board.target, optimize=Optimize.SPEED)

    def run(samples: SampleBatch) -> list[Mapping[str, Array]]:
        return run_samples(
            model.artifact, board, samples.values, timeout=120, steps=samples.steps or 1
        )

    check_golden(name, model, BOARD, run)
