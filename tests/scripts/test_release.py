"""What a tag publishes: the steps of its workflow, run with stand-ins for programs of others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import microtir
from scripts.release.notes import ROOT, notes

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CHANGES = "# Changes\n\n## Unreleased\n\nNext.\n\n## 0.2.0\n\nFaster.\n\n## 0.1.0\n\nThe first.\n"


def run(script: str, *arguments: str, folder: Path) -> tuple[int, str, list[str]]:
    """Run a step with a `python`, a `gh` and a `git` that write down how they are called."""
    calls = folder / "calls"
    for name in ("python", "gh", "git"):
        program = folder / name
        program.write_text(
            f'#!/bin/sh\necho "{name} $*" >>"{calls}"\n'
            f'[ "$2" != view ] || [ -e "{folder}/there" ]\n'
        )
        program.chmod(0o755)
    done = subprocess.run(
        ["bash", str(ROOT / script), *arguments], capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "GITHUB_REF_NAME": "v1.2.3"},
    )  # fmt: skip
    called = calls.read_text().splitlines() if calls.exists() else []
    return done.returncode, done.stdout, called


def test_workflows_are_what_github_takes() -> None:
    """Each follows GitHub's schema, and names scripts and targets that are there."""
    checker = Path(sys.executable).with_name("check-jsonschema")
    done = subprocess.run(
        [checker, "--builtin-schema", "vendor.github-workflows", *WORKFLOWS],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for workflow in WORKFLOWS:
        commands = re.findall(r"run: (.*)", workflow.read_text("utf-8"))
        for script in re.findall(r"scripts/\S+\.sh", "\n".join(commands)):
            assert os.access(ROOT / script, os.X_OK), script
        for target in re.findall(r"make (\w+)", "\n".join(commands)):
            assert f"\n{target}: " in makefile


def test_notes_are_those_of_the_version() -> None:
    """The section of the list, and an error where tag, package and list are not of one version."""
    assert notes("v0.2.0", "0.2.0", CHANGES) == "Faster.\n"
    with pytest.raises(ValueError, match=r"v0\.3\.0 is not v0\.2\.0"):
        notes("v0.3.0", "0.2.0", CHANGES)
    with pytest.raises(ValueError, match=r"no section '## 0\.3\.0'"):
        notes("v0.3.0", "0.3.0", CHANGES)
    command = [sys.executable, "-m", "scripts.release.notes"]
    done = subprocess.run(
        [*command, f"v{microtir.__version__}"], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    refused = subprocess.run([*command, "v9"], cwd=ROOT, capture_output=True, check=False)
    assert refused.returncode == 1 and b"release: the tag v9 is not" in refused.stderr


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("micropython", "python -m scripts.product.packages {packages} micropython"),
        ("freertos", "python -m pytest -q tests/examples/test_existing_project.py -k three_tasks"),
        ("riot", "python -m pytest -q tests/examples/test_existing_project.py -k riot"),
    ],
)
def test_an_sdk_is_fetched_and_used(name: str, call: str, tmp_path: Path) -> None:
    """The scheduled workflow clones an SDK at its tag, then calls what builds with it."""
    status, _, calls = run("scripts/product/sdks.sh", name, "v0-of-no-sdk", folder=tmp_path)
    assert status == 0 and len(calls) == (3 if name == "micropython" else 2)
    assert calls[0].startswith("git clone --quiet --depth 1 --branch v0-of-no-sdk https://")
    assert calls[1] == call.format(packages=ROOT / "build" / "sdks" / "packages")
    (tmp_path / "calls").unlink()
    assert run("scripts/product/sdks.sh", "odd", "v1", folder=tmp_path)[0] == 2


def test_steps_call_what_they_say(tmp_path: Path) -> None:
    """Tests of every system, and a release that is made once."""
    status, _, calls = run("scripts/release/without_tools.sh", "-x", folder=tmp_path)
    assert (status, len(calls)) == (0, 2)
    assert calls[1] == "python -m pytest -n auto --without-tools -q -x"
    (tmp_path / "calls").unlink()
    publish = ("scripts/release/publish.sh", "notes.md", "dist/a.whl")
    status, _, calls = run(*publish, folder=tmp_path)
    assert status == 0 and calls[1:] == [
        "gh release create v1.2.3 --verify-tag --title v1.2.3 --notes-file notes.md dist/a.whl"
    ]
    (tmp_path / "there").touch()
    (tmp_path / "calls").unlink()
    status, said, calls = run(*publish, folder=tmp_path)
    assert (status, len(calls)) == (0, 1) and "there already" in said


def test_a_tag_needs_the_signature_of_a_listed_key(tmp_path: Path) -> None:
    """A plain tag, one of another key, and a list without keys end with status 1."""
    script = tmp_path / "scripts" / "release" / "signed.sh"
    script.parent.mkdir(parents=True)
    script.write_bytes((ROOT / "scripts" / "release" / "signed.sh").read_bytes())
    signers = tmp_path / ".github" / "allowed_signers"
    signers.parent.mkdir()
    signers.write_bytes((ROOT / ".github" / "allowed_signers").read_bytes())

    def called(*command: str | Path) -> subprocess.CompletedProcess[str]:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "gpg.format=ssh")
        words = ["git", *identity, *command[1:]] if command[0] == "git" else list(command)
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

    for name in ("listed", "other"):
        made = called("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", name)
        assert made.returncode == 0, made.stderr
    called("git", "init", "-q")
    called("git", "commit", "-q", "--allow-empty", "-m", "a")
    called("git", "tag", "plain")
    for name in ("listed", "other"):
        key = f"user.signingKey={tmp_path / name}.pub"
        signed = called("git", "-c", key, "tag", "-s", "-m", name, name)
        assert signed.returncode == 0, signed.stderr
    assert "lists no key" in called("bash", script, "listed").stderr
    signers.write_text(f'a@b namespaces="git" {(tmp_path / "listed.pub").read_text()}')
    statuses = {
        name: called("bash", script, name).returncode for name in ("listed", "other", "plain")
    }
    assert statuses["listed"] == 0 and statuses["other"] != 0 and statuses["plain"] != 0
