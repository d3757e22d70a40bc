"""Small models as real exporters write them, each on an emulated board against its golden file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from microtir.boards import load_board
from microtir.config.enums import Optimize
from microtir.graph.ir import Array
from microtir.host.samples import SampleBatch
from microtir.projects import run_samples
from tests.models.test_exported import EACH, check_golden
from tests.models.test_models import compile_model
from tests.support.model_gate import EXPORTED

BOARD = "mps2_an386"


@pytest.mark.parametrize("name", EACH)
def test_equals_its_golden_file_on_a_board(models_dir: Path, name: str) -> None:
    """The fastest kernels of a Cortex-M4 give what the host gives: floats as near."""
    board = load_board(BOARD)
    model = compile_model(models_dir / EXPORTED, name, target=board.target, optimize=Optimize.SPEED)

    def run(samples: SampleBatch) -> list[Mapping[str, Array]]:
        return run_samples(
            model.artifact, board, samples.values, timeout=120, steps=samples.steps or 1
        )

    check_golden(name, model, BOARD, run)
