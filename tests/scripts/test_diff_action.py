"""The action that compares the models of a pull request: its scripts, run in a repository."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.network import python_path

ROOT = Path(__file__).resolve().parents[2]
ACTION = ROOT / ".github" / "actions" / "diff"
MODELS = ROOT / "examples" / "digits"
# Both programs of the action, as this checkout and a pull request that nobody opened.
MICROTIR = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m microtir "$@"\n'
GH = '#!/bin/sh\nprintf "%s\\n" "$@" >"$GH_CALLS"\n'


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A commit with the int8 model; then the same name holds the model in floats."""
    folder = tmp_path / "repository"
    (folder / "models").mkdir(parents=True)
    for name, text in (("microtir", MICROTIR), ("gh", GH)):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text, "utf-8")
        program.chmod(0o755)
    shutil.copy(MODELS / "digits_int8.tflite", folder / "models" / "a model.tflite")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "models"]):
        subprocess.run([*git, *command], cwd=folder, check=True)
    shutil.copy(MODELS / "digits_float.tflite", folder / "models" / "a model.tflite")
    return folder


def run(repository: Path, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script of the action as its step does."""
    environment = {
        **os.environ,
        "PYTHONPATH": python_path(ROOT / "generator"),
        "PATH": f"{repository.parent / 'bin'}:{os.environ['PATH']}",
        "REPORT": str(repository.parent / "report.md"),
        **variables,
    }
    return subprocess.run(
        ["bash", str(ACTION / script)], cwd=repository, env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_action_is_one() -> None:
    """The file is what GitHub's schema says that an action is, and names scripts that are there."""
    checker = Path(sys.executable).with_name("check-jsonschema")
    schema = ["--builtin-schema", "vendor.github-actions"]
    done = subprocess.run(
        [checker, *schema, ACTION / "action.yml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    text = (ACTION / "action.yml").read_text("utf-8")
    for script in ("compare.sh", "comment.sh"):
        assert f'bash "$GITHUB_ACTION_PATH/{script}"' in text and (ACTION / script).is_file()


def test_models_are_compared_and_the_report_is_a_comment(repository: Path) -> None:
    """What grew fails the step and stands in the report, which the next step puts on the pull."""
    models = "models/a model.tflite\n\nmodels/new.tflite\n"
    shutil.copy(MODELS / "digits_int8.tflite", repository / "models" / "new.tflite")
    flags = '--target "c -mcpu=cortex-m0" --optimize flash'
    summary = repository.parent / "summary.md"
    done = run(repository, "compare.sh", MODELS=models, BASE="HEAD", FLAGS=flags,
               LIMITS="--max-flash 5", GITHUB_STEP_SUMMARY=str(summary))  # fmt: skip
    assert done.returncode == 1, done.stderr
    report = (repository.parent / "report.md").read_text("utf-8")
    assert report == summary.read_text("utf-8")
    assert "### models/a model.tflite" in report and "| flash | " in report
    assert "flash has grown by" in report
    new = report.split("It is not in HEAD. What it takes:\n\n```text\n")[1]
    assert new.startswith("layers ") and "bytes of RAM" in new and new.endswith("\n```\n")
    calls = repository.parent / "calls"
    assert run(repository, "comment.sh", PULL_REQUEST="7", GH_CALLS=str(calls)).returncode == 0
    told = calls.read_text("utf-8").splitlines()
    assert told[:3] == ["pr", "comment", "7"] and told[-1].endswith("report.md")


def test_a_new_model_that_does_not_compile_fails_the_step(repository: Path) -> None:
    """The report has the error."""
    (repository / "models" / "new.tflite").write_text("no model")
    done = run(repository, "compare.sh", MODELS="models/new.tflite", BASE="HEAD")
    report = (repository.parent / "report.md").read_text("utf-8")
    assert done.returncode == 2 and "error: new.tflite: " in report


def test_flags_are_words_and_no_program(repository: Path) -> None:
    """What a workflow passes on is never run; models that are not named are an error."""
    (repository / "models" / "a model.tflite").write_bytes(
        (MODELS / "digits_int8.tflite").read_bytes()
    )
    same = run(repository, "compare.sh", MODELS="models/a model.tflite", BASE="HEAD",
               FLAGS="$(touch harm)", LIMITS="--max-ram 0")  # fmt: skip
    assert same.returncode == 2 and not (repository / "harm").exists()
    assert run(repository, "compare.sh", MODELS="\n", BASE="HEAD").returncode == 2
