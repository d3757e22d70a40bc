"""Files of boards and projects that are no such files end in a diagnostic, whatever is in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import microtir
from microtir import CompilationConfig
from microtir.boards import load_board
from microtir.boards.errors import BoardError, ProjectError
from microtir.projects import Project, generate, load_project
from tests.support.small_models import module_of, tiny_graph


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = " + "[" * 5000 + "]" * 5000, "nested too deep|is not TOML"),
        ("x = " + "{a=" * 5000 + "1" + "}" * 5000, "nested too deep|is not TOML"),
        ("clock_hz = " + "9" * 5000, "is not TOML|63 bits"),
        ("clock_hz = 0x" + "f" * 5000, "clock_hz"),
        ("title = 0x" + "f" * 5000, "title.*too long to be shown"),
        ('title = "a\\u0000b"', "cannot be printed"),
        ('title = "a\\nb"', "a line break"),
        ('title = "\\uD800"', "is not TOML"),
        ("clock_hz = 1e5", "clock_hz"),
        ("#" * 2**20 + "#", "more than 1048576 bytes"),
        ("\0", "is not TOML"),
        ("\xff", "is not TOML"),
    ],
    ids=lambda value: value[:12],
)
def test_a_board_that_python_stumbles_over(tmp_path: Path, text: str, message: str) -> None:
    """Nesting, digits and characters that a reader gives up on ended in internal errors."""
    known = load_board("host").file.read_text()
    key = text.partition(" =")[0]
    lines = [line for line in known.splitlines() if not line.startswith(f"{key} =")]
    folder = tmp_path / "mine"
    folder.mkdir()
    content = text.encode("latin-1") + b"\n" + "\n".join(lines).encode()
    (folder / "board.toml").write_bytes(content)
    with pytest.raises(BoardError, match=f"(?s){message}"):
        load_board("mine", [tmp_path])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project with a small model."""
    artifact = microtir.build(
        module_of(tiny_graph()), CompilationConfig(targets="c", module_name="tiny")
    )
    return generate(artifact, "host", "baremetal", tmp_path_factory.mktemp("p") / "p")


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "program elsewhere": lambda d: d.update(program="/bin/true"),
    "program above": lambda d: d.update(program="../../bin/true"),
    "board elsewhere": lambda d: d.update(board="../../evil"),
    "model name": lambda d: d["models"][0].update(name="**/x"),
    "function": lambda d: d["models"][0].update(run="$(touch owned)"),
    "float": lambda d: d["models"][0]["layers"][0].update(macs=1.5),
    "infinite": lambda d: d["models"][0]["layers"][0].update(macs=float("inf")),
    "no list": lambda d: d.update(models={}),
    "type": lambda d: d.update(type="banana"),
    "unknown": lambda d: d.update(evil=1),
    "missing": lambda d: d.pop("build"),
    "zero": lambda d: d["build"].update(command=["make\0"]),
    "no command": lambda d: d["build"].update(command=[]),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_damaged_project(made: Project, tmp_path: Path, case: str) -> None:
    """A project's file names nothing outside of the project, and every value has its type."""
    facts = json.loads((made.folder / "project.json").read_text())
    CHANGES[case](facts)
    (tmp_path / "project.json").write_text(json.dumps(facts))
    with pytest.raises(ProjectError, match="is damaged"):
        load_project(tmp_path)


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000, "[]", "\0", '{"format": 1}'])
def test_no_project_at_all(tmp_path: Path, text: str) -> None:
    """What is no JSON, or another, is damaged."""
    (tmp_path / "project.json").write_text(text)
    with pytest.raises(ProjectError, match="is damaged"):
        load_project(tmp_path)


def test_damaged_facts_of_a_model(made: Project, tmp_path: Path) -> None:
    """What lies beside a model's sources is checked before anything is computed from it."""
    path = next(made.folder.rglob("metadata.json"))
    text = path.read_text()
    facts = json.loads(text)
    facts["ports"][0]["shape"] = [2**31 - 1] * 9
    path.write_text(json.dumps(facts))
    try:
        with pytest.raises(ProjectError, match=r"is damaged.*a tensor of"):
            made.metadata()
    finally:
        path.write_text(text)
    assert made.metadata()[0].module_name == "tiny"
