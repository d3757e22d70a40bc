"""Nothing is called that the oldest Python lacks; a newer one on the machine would not notice."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.layering.source import ROOT, report

FOLDERS = ("generator", "templates", "tests", "scripts", "benchmarks", "examples")

# What maintenance releases brought, as 3.10.12 and 3.11.4 the filters of archives: Debian 12 has
# 3.11.2, and tools that know the version of Python alone take it for new enough, or never see it
# where they do not know a value's type.
LATE_ARGUMENTS = {"extract": "filter", "extractall": "filter", "getaddresses": "strict",
                  "parseaddr": "strict", "unpack_archive": "filter"}  # fmt: skip
LATE_NAMES = frozenset(
    {"data_filter", "get_int_max_str_digits", "set_int_max_str_digits", "tar_filter"}
    | {"fully_trusted_filter", "GetReparseDeferralEnabled", "SetReparseDeferralEnabled"}
)


def late(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines that use what only maintenance releases brought."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in LATE_NAMES:
            yield node.lineno, node.attr
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            argument = LATE_ARGUMENTS.get(node.func.attr)
            if argument in {keyword.arg for keyword in node.keywords} - {None}:
                yield node.lineno, f"{node.func.attr}({argument}=…)"


def test_no_call_is_newer_than_the_python_that_distributions_have() -> None:
    """Two tests unpacked archives with an argument that Debian 12's Python 3.11.2 lacks."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {what} came in a maintenance release"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for text in (path.read_text("utf-8"),)
        if any(name in text for name in (*LATE_ARGUMENTS, *LATE_NAMES))  # few have to be parsed
        for line, what in late(ast.parse(text))
    ]
    assert not found, report(found)


@pytest.mark.parametrize(
    "text", ["archive.extractall('x', filter='data')", "sys.set_int_max_str_digits(0)"]
)
def test_what_came_late_is_found(text: str) -> None:
    """Whatever the value is called and however it was made."""
    assert len(list(late(ast.parse(text)))) == 1
    assert not list(late(ast.parse("archive.extractall('x'); filter(print, x)")))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import tomllib\n", "tomllib"),
        ("import enum\nclass Colour(enum.StrEnum):\n    RED = 'red'\n", "enum.StrEnum"),
        ("from itertools import batched\n", "itertools.batched"),
        ("import contextlib\nwith contextlib.chdir('x'):\n    pass\n", "contextlib.chdir"),
        ("try:\n    pass\nexcept* OSError:\n    pass\n", "except*"),
    ],
)
def test_lint_finds_newer_calls(tmp_path: Path, text: str, name: str) -> None:
    """`make lint` finds by name what Python 3.11 and later brought, and passes what 3.10 has."""
    file = tmp_path / "newer.py"
    command = [
        sys.executable,
        "-c",
        "from vermin import main; main()",
        "-c",
        str(ROOT / "vermin.ini"),
        str(file),
    ]
    for content, status in ((text, 1), ("import enum\nenum.Enum('A', 'B')\n", 0)):
        file.write_text(content, encoding="utf-8")
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, name in done.stdout) == (status, bool(status)), done.stdout


def test_lint_looks_at_every_folder() -> None:
    """The folders that `make lint` looks into are those with Python files."""
    (line,) = [line for line in (ROOT / "Makefile").read_text().splitlines() if "/vermin " in line]
    assert sorted(line.split("vermin ")[1].split()) == sorted(FOLDERS)
    tracked = {path.relative_to(ROOT).parts[0] for path in ROOT.glob("[!.]*/**/*.py")}
    assert tracked - {"build", "dist"} <= set(FOLDERS)
