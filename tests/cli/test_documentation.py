from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support.command import ROOT, Command

PAGE = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ microtir (.*)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_of_the_page_work(
    microtir: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    """Every command of the page does what it says: status 0, and no word on stderr."""
    monkeypatch.chdir(tmp_path)
    result = microtir(*shlex.split(line))
    assert (result.status, result.err) == (0, "")


def test_output_of_the_page_is_real(microtir: Command) -> None:
    """The output that the page shows is what the command prints."""
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert microtir("verify", "example:digits").out == shown


def test_page_lists_every_verb(microtir: Command) -> None:
    """The table of verbs has the verbs of the help, in the same order."""
    table = re.findall(r"^\| `([\w-]+)[^`]*` \|", PAGE.split("## Configuration")[0], re.MULTILINE)
    listed = microtir("--help").out.split("Commands:")[1].strip().splitlines()
    assert table == [line.split()[0] for line in listed]
