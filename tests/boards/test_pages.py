"""docs/boards.md, profile.md and search.md: every command works, and what they show is real."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from microtir.boards import all_boards
from microtir.frontend import from_tflite
from tests.support.command import INT8, ROOT, Command
from tests.support.cut_layers import cut_out


def page(name: str) -> str:
    """Return the text of a page."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


# What plans for all boards, and what measures every kernel, is for the soak: other tests have it.
MANY = ("fit ", "tune ", "--tuning-records")


@pytest.mark.parametrize(
    ("name", "has_all"),
    [
        ("boards.md", False),
        ("profile.md", False),
        ("search.md", False),
        pytest.param("search.md", True, marks=pytest.mark.soak_only),
    ],
)
def test_commands_of_the_page_work(
    microtir: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, has_all: bool
) -> None:
    """The commands of a page, one after another: status 0, and no word on stderr."""
    monkeypatch.chdir(tmp_path)
    outputs = {}
    commands = re.findall(r"^\$ microtir (.*)$", page(name), re.MULTILINE)
    assert commands
    for line in commands:
        if any(word in line for word in MANY) and not has_all:
            continue
        words = shlex.split(line)
        if words[0] == "pareto" and not has_all:  # of fewer layers: it measures every program
            words[1] = "digits_int8.tflite"
            graph = from_tflite(INT8).graph
            assert graph is not None
            Path(words[1]).write_bytes(cut_out(graph.nodes[-2:]))
        result = microtir(*words)
        assert (result.status, result.err) == (0, ""), line
        outputs[line] = result.out
    for shown in re.findall(r"```text\n(.*?)```", page(name), re.DOTALL):
        heads = [
            without_figures(output)[: len(without_figures(shown))] for output in outputs.values()
        ]
        assert without_figures(shown) in heads
    if name == "profile.md":
        written = json.loads((tmp_path / "digits.json").read_text())
        listed = re.findall(r"^\| (`.*?) \|", page(name).split("## JSON")[1], re.MULTILINE)
        assert re.findall(r"`(\w+)`", " ".join(listed)) == list(written)


def without_figures(text: str) -> str:
    """Return a text without numbers that do not count: they change with every better kernel."""
    return re.sub(r"[\d,.]*\d", "N", text)


def test_page_lists_the_boards() -> None:
    """The table of the page has every board, with the project types of each label."""
    text = page("boards.md").split("## Labels")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*?) \|$", text, re.MULTILINE)
    expected = []
    for board in all_boards():
        labels: dict[str, list[str]] = {"executed": [], "built": [], "checked": []}
        for support in board.projects:
            labels[support.label.value].append(support.type.value)
        expected.append((board.name, *(", ".join(types) for types in labels.values())))
    table = "\n".join(f"| `{a}` | {b} | {c} | {d} |" for a, b, c, d in expected)
    assert rows == expected, f"the table should be:\n{table}"
