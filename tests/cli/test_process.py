from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import microtir as package
from microtir import driver, frontend
from microtir.cli.status import INTERRUPTED
from tests.support.command import INT8, ROOT, Command
from tests.support.network import python_path

VERBS = (
    "compile",
    "verify",
    "run",
    "evaluate",
    "profile",
    "pareto",
    "tune",
    "check",
    "check-certificate",
    "evidence",
    "conform",
    "inspect",
    "quantise",
    "fit",
    "report",
    "studio",
    "diff",
    "package",
    "boards",
    "doctor",
    "options",
    "operators",
    "targets",
    "explain",
    "completion",
    "micro",
    "tvmc",
)


def test_help_lists_what_is_built(microtir: Command) -> None:
    """--help, and no argument at all, list the verbs that exist and no others."""
    result = microtir("--help")
    listed = result.out.split("Commands:")[1].split("\n")
    assert [line.split()[0] for line in listed if line.strip()] == list(VERBS)
    assert result.status == 0
    assert microtir().out == result.out


def test_unknown_verbs_are_refused(microtir: Command) -> None:
    """A word that is no verb is refused with the legal ones."""
    result = microtir("deploy")
    assert result.status == 2
    assert "there is no command 'deploy'" in result.diagnostic
    assert f"expected: {', '.join(VERBS)}" in result.diagnostic


def test_version(microtir: Command) -> None:
    """--version prints the package's version."""
    result = microtir("--version")
    assert (result.status, result.out) == (0, f"microtir {package.__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["compil", "x"], "did you mean 'compile'?"),
        (["verify", "x", "--executer", "aot"], "did you mean '--executor'?"),
        (["verify", "x", "--runtime-crt-system-libs", "1"], "mean '--runtime-crt-system-lib'?"),
        (["compile", "x", "--helpp"], "did you mean '--help'?"),
        (["inspect"], "the argument MODEL is missing"),
        (["profile", "x"], "the option --board is missing"),
        (["compile", "x", "-o", "x.tar"], "fix:      add --output-format mlf"),
        (["verify", "x", "--samples"], "requires an argument"),
        (["verify", "x", "--samples", "many"], "Invalid value for '--samples'"),
        (["verify", "x", "--samples", "0"], "Invalid value for '--samples'"),
        (["inspect", "a", "b"], "unexpected extra argument"),
        (["compile", "x", "--target", "c -mcpu=cortex-m99"], "cortex-m"),
        (["compile", "x", "--optimize", "sped"], "did you mean 'speed'?"),
        (["inspect", "example:digit"], "did you mean 'example:digits'?"),
        (["explain", "pipelin"], "did you mean 'pipeline'?"),
    ],
)
def test_wrong_usage(microtir: Command, arguments: list[str], text: str) -> None:
    """Wrong usage is one diagnostic with a hint, and status 2."""
    result = microtir(*arguments)
    assert result.status == 2
    assert text in result.diagnostic


def test_missing_model(microtir: Command) -> None:
    """A model that is not there: status 3, and the path."""
    result = microtir("inspect", "no/such.tflite")
    assert result.status == 3
    assert "no/such.tflite: there is no such file" in result.diagnostic


@pytest.mark.parametrize("verb", ["compile", "verify", "run", "check", "inspect"])
def test_folder_as_model(microtir: Command, tmp_path: Path, verb: str) -> None:
    """A folder where a model should be: status 3."""
    more = ["-o", tmp_path / "out"] if verb == "compile" else []
    result = microtir(verb, tmp_path, *more)
    assert result.status == 3
    assert "this is a folder" in result.diagnostic


def test_damaged_model(microtir: Command, tmp_path: Path) -> None:
    """A truncated model: status 3, and no traceback."""
    path = tmp_path / "cut.tflite"
    path.write_bytes(INT8.read_bytes()[:5000])
    result = microtir("check", path)
    assert result.status == 3
    assert "cut.tflite" in result.diagnostic


def test_defect_is_one_line(microtir: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception that is no diagnostic asks for a report; status 3."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(frontend, "read_model", broken)
    result = microtir("inspect", INT8)
    assert (result.status, result.out) == (3, "")
    assert "internal error, a defect of microtir: ZeroDivisionError: by nothing" in result.err
    assert "please report it" in result.err
    assert "run with --debug" in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("arguments", [["--debug", "inspect", "x"], ["inspect", "x", "--debug"]])
def test_debug_shows_the_traceback(microtir: Command, arguments: list[str]) -> None:
    """--debug, before or after the verb, adds the traceback and changes no status."""
    result = microtir(*arguments)
    assert result.status == 3
    assert "Traceback (most recent call last)" in result.err
    assert result.err.rstrip().splitlines()[-2].startswith("error: x: there is no such file")


def test_interrupt(microtir: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends with status 130 and no traceback."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(driver, "lower", interrupted)
    result = microtir("check", INT8)
    assert (result.status, result.err) == (INTERRUPTED, "interrupted\n")


def test_interrupt_at_the_start() -> None:
    """Ctrl-C while modules are loaded still ends with one word and status 130."""
    program = """
import sys
from microtir.cli import main

class Impatient:
    def find_spec(self, name, *_):
        if name == "microtir.cli.app":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Impatient())
sys.exit(main(["boards"]))
"""
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": python_path(ROOT / "generator")},
    )  # fmt: skip
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "interrupted\n")


def test_broken_pipe() -> None:
    """A reader that leaves early causes no message; the status is that of SIGPIPE."""
    process = subprocess.Popen(
        [sys.executable, "-m", "microtir", "options"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": python_path(ROOT / "generator")},
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


def test_no_compiler(microtir: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without gcc and clang `verify` says what to install."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    result = microtir("verify", "example:digits", "--samples", "1")
    assert result.status == 3
    assert result.err.startswith("error: host: no C compiler on this machine")
    assert "fix:      install a C compiler" in result.err


def test_progress_on_a_terminal(tmp_path: Path) -> None:
    """What is being done is shown where stderr is a terminal; no C compiler is needed for it.

    That nothing is shown elsewhere is what all tests see that ask for an empty stderr.
    """
    ours, theirs = pty.openpty()
    environment = {"PYTHONPATH": python_path(ROOT / "generator"), "TERM": "xterm", "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-m", "microtir", "compile", "example:digits", "-o", str(tmp_path / "o")],
        stdout=subprocess.PIPE, stderr=theirs, check=True, env={**os.environ, **environment},
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal that nobody holds any more
        while block := os.read(ours, 65536):
            shown += block
    os.close(ours)
    assert "compiling: tir" in shown.decode()  # the stage that takes longest
    assert b"compiling" not in done.stdout
    assert (tmp_path / "o" / "digits_int8.c").is_file()


def test_help_loads_little() -> None:
    """--help loads neither the compiler nor numpy, jinja2, cffi or rich: it must start quickly."""
    code = (
        "import sys, json\n"
        "from microtir.cli import main\n"
        "status = main(['--help'])\n"
        "print(json.dumps([status, sorted(name.partition('.')[0] for name in sys.modules)]))\n"
        "print(json.dumps(sorted(name for name in sys.modules if name.startswith('microtir.'))))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": python_path(ROOT / "generator")},
    )  # fmt: skip
    status, loaded = json.loads(done.stdout.splitlines()[-2])
    own = json.loads(done.stdout.splitlines()[-1])
    assert status == 0
    assert not {"numpy", "jinja2", "cffi", "rich", "pycparser", "tflite"} & set(loaded)
    light = (
        "cli", "compat", "config", "errors", "files", "instruction_sets", "resources", "support",
        "version",
    )  # fmt: skip
    assert not [name for name in own if name.split(".")[1] not in light]


def test_module_runs_like_the_script() -> None:
    """`python -m microtir` is the command line, and its exit status is the command's."""
    result = subprocess.run(
        [sys.executable, "-m", "microtir", "inspect", "nothing.tflite"],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": python_path(ROOT / "generator")},
    )  # fmt: skip
    assert result.returncode == 3
    assert result.stderr.startswith("error: nothing.tflite")


def test_fixes_can_be_typed(microtir: Command, tmp_path: Path) -> None:
    """A command line is told flags and verbs, where it was told Python's calls and arguments."""
    made = tmp_path / "project"
    create = ("micro", "create-project", "-o", made, "--board", "host", INT8)
    assert microtir(*create).status == 0
    assert f"build it: microtir micro build {made}" in microtir("micro", "run", made).diagnostic
    assert "or add --force: " in microtir(*create).diagnostic
    flags = ("--compatibility", "microtvm", "--executor-aot-link-params", "0")
    refused = microtir("compile", INT8, "-o", tmp_path / "x", *flags)
    assert "fix:      use --executor-aot-link-params 1" in refused.diagnostic
    word = microtir("check", INT8, "--target", "c -tag=x")
    assert "--config nrf52840 selects a part" in word.diagnostic
