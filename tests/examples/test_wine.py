"""The example of scikit-learn: fitted, compiled, and asked on an emulated board."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import microtir
from microtir import boards, projects
from microtir.config import CompilationConfig
from microtir.operators.trees.definition import TreeEnsemble

pytestmark = pytest.mark.tools


@pytest.fixture(name="demo", scope="module")
def demo_fixture() -> ModuleType:
    """Return the example: its packages take seconds to import, which not every run needs."""
    from examples.wine import demo

    return demo


def test_the_board_has_the_labels_of_scikit_learn(demo: ModuleType, tmp_path: Path) -> None:
    """A forest that is conditions in flash says what scikit-learn says, missing readings too."""
    trained = demo.train()
    assert np.isnan(trained.inputs).any()
    file = tmp_path / "wine.onnx"
    file.write_bytes(demo.exported(trained))
    board = boards.load_board(demo.BOARD)
    config = CompilationConfig.from_target(board.target).with_(module_name="wine")
    artifact = microtir.build(microtir.frontend.from_onnx(file), config)
    operators = artifact.module.require_program("wine").plan.operators
    assert [op.candidate.kernel for op in operators if isinstance(op.node.op, TreeEnsemble)] == [
        "branches"
    ]
    results = projects.run_samples(artifact, board, [{"X": x[np.newaxis]} for x in trained.inputs])
    equal, most = demo.difference(trained, results)
    assert equal == len(trained.inputs) and most < 1e-6


def test_the_demonstration_says_what_it_found(
    demo: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It ends with the accuracy, the agreement and the next command."""
    monkeypatch.setattr(sys, "argv", ["demo", "--output", str(tmp_path / "out")])
    assert demo.main() == 0
    said = capsys.readouterr().out
    assert "labels as scikit-learn 60 of 60 on this machine" in said
    assert "next: microtir profile" in said
