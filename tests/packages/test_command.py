"""`microtir package`, and the page about packages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from microtir.boards import Label
from microtir.packages import all_formats
from tests.support.command import INT8, ROOT, Command
from tests.support.pages import follow

PAGE = (ROOT / "docs" / "packages.md").read_text(encoding="utf-8")


def test_formats_are_listed(microtir: Command) -> None:
    """Each format stands in a line with its label; no model is asked for."""
    result = microtir("package", "--list")
    assert result.status == 0
    for known in all_formats():
        assert re.search(rf"^{known.format} .* {known.label.value} ", result.out, re.MULTILINE)


def test_a_package_is_written(microtir: Command, tmp_path: Path) -> None:
    """Options of a configuration count, and the summary says what was made."""
    target = tmp_path / "p"
    given = ("--format", "rust", "-o", target, "--package-version", "2.0.1", "--ram-budget", "4K")
    result = microtir("package", INT8, *given, "--license", "MIT")
    assert result.status == 0, result.err
    assert result.out.startswith(f"digits_int8 -> {target}, for cortex-m4\n")
    assert 'version = "2.0.1"' in (target / "Cargo.toml").read_text()
    again = microtir("package", INT8, *given, "--force", "--json")
    facts = json.loads(again.out)
    assert (facts["version"], facts["models"]) == ("2.0.1", ["digits_int8"])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "add --format FORMAT"),
        (("--format", "rust"), "add -o DIR"),
        (("--format", "rusty", "-o", "p"), "did you mean 'rust'?"),
        (("--format", "rust", "-o", "p", "--package-version", "1"), "is no version"),
    ],
)
def test_wrong_arguments(microtir: Command, arguments: tuple[str, ...], text: str) -> None:
    """The diagnostic says what to add, or what is legal."""
    result = microtir("package", INT8, *arguments)
    assert result.status == 2
    assert text in result.diagnostic


def test_labels_of_the_page() -> None:
    """The table of docs/packages.md has each format by its label."""
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \| (\w+) \|", PAGE, re.MULTILINE))
    assert rows == {str(known.format): known.label.value for known in all_formats()}
    assert set(rows.values()) == {label.value for label in Label}


def test_page(microtir: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/packages.md says about making packages works, and its programs run."""
    monkeypatch.chdir(tmp_path)
    output = follow("packages.md", tmp_path)
    assert "0 values differ" in output
    assert "digits_models 1.0.0" in output
