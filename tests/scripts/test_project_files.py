"""Files that other programs read of the repository: GitHub's forms, and what pre-commit runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
FORMS = [path for path in sorted(GITHUB.glob("ISSUE_TEMPLATE/*.yml")) if path.stem != "config"]


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("dependabot", [GITHUB / "dependabot.yml"]),
        ("github-issue-config", [GITHUB / "ISSUE_TEMPLATE" / "config.yml"]),
        ("github-issue-forms", FORMS),
    ],
)
def test_github_takes_them(schema: str, files: list[Path]) -> None:
    """Each file follows the schema that GitHub has for it."""
    checker = Path(sys.executable).with_name("check-jsonschema")
    command = [str(checker), "--builtin-schema", f"vendor.{schema}", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_pre_commit_has_the_versions_of_the_project() -> None:
    """A commit is checked by the versions that `make lint` has."""
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    revisions = dict(re.findall(r"repo: \S+/(\S+)\n +rev: v(\S+)", hooks))
    for repository, package in (("ruff-pre-commit", "ruff"), ("codespell", "codespell")):
        assert f'"{package}=={revisions[repository]}"' in project


def test_no_file_has_both_sides_of_a_conflict() -> None:
    """What a merge or a rebase left open is in no file, whatever its language."""
    command = ["git", "grep", "-lE", "^(<{7}|>{7}) "]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
