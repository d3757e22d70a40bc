"""The repository names no path of a machine that it was written on."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.layering.source import ROOT, report

# Home and work folders: nothing that runs elsewhere can depend on one.
PATTERN = re.compile(
    rb"(?<![\w./*-])(?:/(?:home|root|Users|work|farm|mnt|srv)/[\w.]|[A-Z]:\\\\?Users\\)"
)


def _tracked() -> list[str]:
    """Tracked files; a source archive without a git folder has none, and nothing to hide."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z"]
    result = subprocess.run(command, capture_output=True, check=False)
    return sorted(filter(None, result.stdout.decode().split("\0")))


def test_tracked_files_name_no_machine() -> None:
    """No tracked file, text or binary, holds an absolute path of somebody's machine."""
    found = []
    for name in _tracked():
        path = ROOT / name
        if not path.is_file():
            continue
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            if match := PATTERN.search(line):
                found.append(f"{name}:{number}: {match[0].decode()}...")
    assert not found, report(found)


@pytest.mark.parametrize("folder", ["home", "root", "Users", "work"])
def test_machine_path_is_found(folder: str) -> None:
    """A path is found at the start of a line, in quotes and after an equals sign."""
    path = f"/{folder}/someone/x".encode()
    for line in (path, b'"' + path + b'"', b"ROOT=" + path):
        assert PATTERN.search(line)


@pytest.mark.parametrize(
    "line", [b"https://example.org/home/x", b"build/home/x", b"#!/usr/bin/env", b"a.tar:/homework/"]
)
def test_other_paths_pass(line: bytes) -> None:
    """Addresses, relative paths and system paths are not machine paths."""
    assert not PATTERN.search(line)
