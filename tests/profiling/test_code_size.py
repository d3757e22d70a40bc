"""What the compilers of boards make of a program, without a board's linker script."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig
from microtir.artifact import Artifact, SourceFile
from microtir.boards import load_board
from microtir.profiling import BoardCompiler, profile
from tests.support.small_models import module_of, quantised_graph


def built(board: str) -> Artifact:
    """Return a small model for a board."""
    config = CompilationConfig.from_target(load_board(board).target)
    return microtir.build(module_of(quantised_graph()), config)


@pytest.mark.parametrize("name", ["mps2_an386", "riscv32", "atmega2560"])
def test_code_is_that_of_the_board(name: str) -> None:
    """As much as `profile` finds in the linked program, but for library functions of both."""
    board, artifact = load_board(name), built(name)
    compiler = BoardCompiler.of(board)
    assert compiler is not None and compiler.name.endswith("-O2")
    own = profile(artifact, board).code
    assert own <= compiler(artifact) <= own + 600


def test_what_was_compiled_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same program again needs no compiler, and a machine without one has none to offer."""
    board, artifact = load_board("mps2_an386"), built("mps2_an386")
    compiler = BoardCompiler.of(board)
    assert compiler is not None
    size = compiler(artifact)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert compiler(artifact) == size
    assert BoardCompiler.of(board) is None


def test_what_is_too_large_for_a_board_is_measured() -> None:
    """More code than the chip has flash: the number is what one wants to know then."""
    board = load_board("uno")
    lines = [f"int grow{n}(int x) {{ return x * {n + 3} / (x + {n}); }}" for n in range(1200)]
    source = "\n".join(lines)
    artifact = built("uno")
    files = tuple(
        SourceFile(f.path, f.text + source) if f.path == "default.c" else f
        for f in artifact.sources
    )
    compiler = BoardCompiler.of(board)
    assert compiler is not None
    assert compiler(replace(artifact, sources=files)) > 32 * 1024
