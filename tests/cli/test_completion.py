"""What a shell offers behind the words that were typed, and the scripts that ask for it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from microtir.boards import all_boards
from microtir.cli.completion import SCRIPTS
from tests.support.command import ROOT, Command
from tests.support.network import python_path


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("microtir com", ["compile", "completion"]),
        ("microtir micro cr", ["create-project"]),
        ("microtir --ver", ["--version"]),
        ("microtir compile e", ["example:digits"]),
        ("microtir compile 'ex", ["example:digits"]),
        ("microtir compile --optimize ", ["speed", "ram", "ram-least", "flash", "balanced"]),
        ("microtir compile example:digits --optimize s", ["speed"]),
        ("microtir compile --optimize=f", ["--optimize=flash"]),
        ("microtir verify example:digits --oracle tf", ["tflm"]),
        ("microtir compile --executor-aot-st", ["--executor-aot-steps"]),
        ("microtir compile --target cortex-m33", ["cortex-m33"]),
        ("microtir profile example:digits --board mps2_an38", ["mps2_an385", "mps2_an386"]),
        ("microtir explain p", ["pipeline"]),
        ("microtir diff example:digits exa", ["example:digits"]),
        ("microtir compile --json e", ["example:digits"]),  # a flag takes no value
        ("microtir completion ", list(SCRIPTS)),
        ("microtir compile -o ", []),  # any file
        ("microtir deploy --no", []),
    ],
)
def test_what_is_offered(
    microtir: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    offered: list[str],
) -> None:
    """Verbs, options, values of choices, boards, targets and examples."""
    monkeypatch.chdir(tmp_path)
    result = microtir("completion", "bash", "--of", line)
    assert (result.status, result.err, result.out.splitlines()) == (0, "", offered)


def test_daily_options_come_first(microtir: Command) -> None:
    """Behind `--` stand the options of the short help; hidden verbs and options never."""
    offered = microtir("completion", "bash", "--of", "microtir compile --").out.split()
    assert {"--output", "--target", "--ram-budget", "--help"} <= set(offered)
    assert "--executor-aot-steps" not in offered and len(offered) < 30
    assert "--of" not in microtir("completion", "bash", "--of", "microtir completion -").out
    boards = microtir("completion", "fish", "--of", "microtir doctor --board ").out.split()
    assert boards == [board.name for board in all_boards()]


def test_models_of_a_folder(
    microtir: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models and folders are offered, other files are not; a folder that is not there is empty."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets" / "old").mkdir(parents=True)
    for name in ("a.tflite", "b.onnx", "c.txt", ".d.onnx"):
        (tmp_path / "nets" / name).touch()
    offered = microtir("completion", "zsh", "--of", "microtir fit ").out.split()
    assert offered == ["example:digits", "nets/"]
    inside = microtir("completion", "zsh", "--of", "microtir fit nets/").out.split()
    assert inside == ["nets/a.tflite", "nets/b.onnx", "nets/old/"]
    assert microtir("completion", "zsh", "--of", "microtir fit none/").out == ""


def test_unknown_shells_are_refused(microtir: Command) -> None:
    """A shell that there is no script for is refused with those that there are."""
    assert "expected: bash, zsh, fish, powershell" in microtir("completion", "tcsh").diagnostic


def test_bash_completes(microtir: Command, tmp_path: Path) -> None:
    """The script does in bash what Tab does, where words are cut at colons and signs, too."""
    program = tmp_path / "microtir"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m microtir "$@"\n')
    program.chmod(0o755)
    (tmp_path / "nets").mkdir()
    script = microtir("completion", "bash").out + (
        "compopt() { echo compopt $*; }\n"
        "for COMP_LINE in 'microtir compile example:di' 'microtir compile --optimize=f'"
        " 'microtir compile ne' 'microtir compile -o '; do\n"
        "  COMP_POINT=${#COMP_LINE}\n"
        "  _microtir microtir\n"
        '  echo "${COMPREPLY[@]}"\n'
        "done\n"
        "complete -p microtir\n"
    )
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, "--norc", "-eu", "-c", script], cwd=tmp_path,
        capture_output=True, text=True, check=False,
        env={
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "PYTHONPATH": python_path(ROOT / "generator"),
        },
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "digits", "flash", "compopt -o nospace", "nets/", "",
        "complete -o default -F _microtir microtir",
    ]  # fmt: skip
