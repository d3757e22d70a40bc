"""An application for microTVM on an emulated board: its main function in place of a project's."""

from __future__ import annotations

from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig
from microtir.projects import generate
from tests.integration.test_microtvm_dropin import APPS, expected
from tests.support.small_models import module_of, quantised_graph


@pytest.mark.parametrize("board", ["mps2_an386", "riscv32"])
def test_application_runs_on_a_board(board: str, tmp_path: Path) -> None:
    """It links with the generated sources and the runtime, and prints the scores."""
    target = {"mps2_an386": "c -mcpu=cortex-m4", "riscv32": "c -march=rv32imc"}[board]
    config = CompilationConfig(targets=target, compatibility="microtvm")
    artifact = microtir.build(module_of(quantised_graph()), config)
    main = tmp_path / "templates" / "baremetal" / "common" / "src" / "main.c"
    main.parent.mkdir(parents=True)
    main.write_text((APPS / "board.c").read_text())
    project = generate(
        artifact, board, "baremetal", tmp_path / "p", template_dir=tmp_path / "templates"
    )
    project.build(["CFLAGS=-O2 -Werror -Imodel/default"])
    result = project.run()
    assert [int(line) for line in result.output.split()] == expected()
