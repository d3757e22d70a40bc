from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from microtir.config import OPTIONS, CompilationConfig
from microtir.config.reference import BEGIN, END, markdown, option_rows, with_tables
from microtir.errors import UsageError
from tests.support.network import python_path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "configuration.md"


def test_page_holds_the_option_table() -> None:
    """docs/configuration.md says what the constructors check, to the letter."""
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page) == page, (
        "run: python -m microtir.config.reference docs/configuration.md"
    )


def test_python_examples_of_the_page_run() -> None:
    """Every Python block of the page runs as it stands, in the order of the page."""
    blocks = PAGE.read_text(encoding="utf-8").split("```python\n")[1:]
    names: dict[str, object] = {}
    for block in blocks:
        exec(block.partition("```")[0], names)
    assert isinstance(names["config"], CompilationConfig)


def test_tables_list_every_option_once() -> None:
    """Rows and Markdown are the table: no option is left out."""
    assert [row["option"] for row in option_rows()] == [option.name for option in OPTIONS]
    assert markdown().count("\n| `") == len(OPTIONS)


def test_page_without_markers_is_refused() -> None:
    """A page that lost its markers is not silently left as it is."""
    with pytest.raises(UsageError, match="has no lines"):
        with_tables("# Configuration\n")
    assert with_tables(f"a\n{BEGIN}\nold\n{END}\nb") == f"a\n{BEGIN}\n\n{markdown()}\n\n{END}\nb"


def test_writer_updates_a_page(tmp_path: Path) -> None:
    """The command that the failing test names does what it says."""
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "microtir.config.reference", str(page)],
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": python_path(ROOT / "generator")},
    )
    assert markdown() in page.read_text(encoding="utf-8")


def test_configuration_imports_nothing_heavy() -> None:
    """`--help` and a program that only makes a configuration do not wait for numpy or jinja2."""
    script = "import sys, microtir.config; print(*sorted(sys.modules))"
    run = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": python_path(ROOT / "generator")},
    )
    heavy = {"numpy", "jinja2", "cffi", "typer", "rich", "tflite", "flatbuffers"}
    assert not heavy & set(run.stdout.split())
