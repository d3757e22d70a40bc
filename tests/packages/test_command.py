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
    given: tuple[str | Path, ...] = ("--format", "rust", "--target", "cortex-m4", "-o", target)
    given += ("--package-version", "2.0.1", "--ram-budget", "4K")
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
        (
            ("--format", "rust", "--target", "c", "-o", "p", "--package-version", "1"),
            "is no version",
        ),
        (("--format", "rust", "-o", "p"), "--target CPU, or --target c (plain C for any CPU)"),
        (("--format", "esp-idf", "-o", "p"), "--target esp32|esp32s2|esp32s3|esp32c3|esp32c6"),
        (("--format", "esp-idf", "-o", "p"), "--board esp32_devkitc|esp32c3_devkitm"),
        (("--format", "pico", "-o", "p", "--config", "default"), "no CPU is named"),
        (("--format", "pico", "-o", "p", "--target-host", "c"), "no CPU is named"),
    ],
)
def test_wrong_arguments(microtir: Command, arguments: tuple[str, ...], text: str) -> None:
    """The diagnostic says what to add, or what is legal."""
    result = microtir("package", INT8, *arguments)
    assert result.status == 2
    assert text in result.diagnostic


def test_the_cpu_is_said(microtir: Command, tmp_path: Path) -> None:
    """Output, README and header name the CPU of the plan; the first two, that no user has one."""
    for given, name, is_usual in (
        (("--board", "esp32c3_devkitm"), "esp32c3", True),
        (("--target", "esp32s3"), "esp32s3", True),
        (("--target", "cortex-m4"), "cortex-m4", False),
    ):
        place = tmp_path / name
        result = microtir("package", INT8, "--format", "esp-idf", *given, "-o", place)
        assert result.out.startswith(f"digits_int8 -> {place}, for {name}\n")
        assert ("warning " not in result.out) == is_usual
        readme = (place / "README.md").read_text()
        assert f"The C code is optimised for {name}:" in readme
        assert ("do not have this CPU" not in readme) == is_usual
        assert f"idf.py set-target {name if is_usual else 'CHIP'} build" in readme
        header = (place / "models" / "digits_int8" / "digits_int8.h").read_text()
        assert f'targets      ["c -mcpu={name}"]' in header


def test_a_configuration_names_the_cpu(microtir: Command, tmp_path: Path) -> None:
    """Neither a file of --config nor an archive needs a target beside it."""
    dumped = microtir("compile", INT8, "--target", "cortex-m33", "-o", "x", "--dump-config").out
    file, archive = tmp_path / "config.json", tmp_path / "model.tar"
    file.write_text(dumped)
    given = ("--config", file, "--output-format", "mlf", "-o", archive)
    assert microtir("compile", INT8, *given).status == 0
    for number, model in enumerate(((INT8, "--config", file), (archive,))):
        place = tmp_path / f"p{number}"
        result = microtir("package", *model, "--format", "pico", "-o", place)
        assert ", for cortex-m33\n" in result.out
        assert "-DPICO_BOARD=pico2\n" in (place / "README.md").read_text()


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
