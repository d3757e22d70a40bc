"""No dead code in the package."""

from __future__ import annotations

from pathlib import Path

import pytest
from vulture import Vulture
from vulture.core import Item

from tests.layering.source import PACKAGE, ROOT, report
from tests.layering.vulture_whitelist import WHITELIST

# Fields of dataclasses and members of enums are data: read through `fields()` or by value.
KINDS = frozenset({"class", "function", "import", "method", "property", "unreachable_code"})


CALLERS = ("examples", "benchmarks", "scripts")


def _dead(package: Path, *callers: Path) -> list[Item]:
    """What `package` defines and nobody uses; typer's verbs are used by being declared."""
    scanner = Vulture(ignore_decorators=["@*.command", "@*.callback"])
    scanner.scavenge([str(path) for path in (package, *callers)])
    unused = scanner.get_unused_code(min_confidence=60)
    return [i for i in unused if i.typ in KINDS and Path(i.filename).is_relative_to(package)]


@pytest.fixture(scope="module")
def dead() -> list[Item]:
    """Dead code of the package, before the whitelist."""
    return _dead(PACKAGE, *(ROOT / name for name in CALLERS if (ROOT / name).is_dir()))


def test_package_has_no_dead_code(dead: list[Item]) -> None:
    """What the package defines is used by it, by an example, or is listed as public.

    Code that only a test uses is dead, too.
    """
    found = [
        f"{Path(item.filename).relative_to(PACKAGE)}:{item.first_lineno}: "
        f"{item.typ} '{item.name}' is used nowhere but in tests"
        for item in dead
        if item.name not in WHITELIST
    ]
    assert not found, report(found)


def test_whitelist_has_no_leftovers(dead: list[Item]) -> None:
    """Every name of the whitelist is one that would be reported without it."""
    assert WHITELIST.keys() <= {item.name for item in dead}


def test_dead_function_is_found(tmp_path: Path) -> None:
    """A function that nobody calls is found; one in an `__all__`, or with a caller, is used."""
    package, caller = tmp_path / "package", tmp_path / "caller.py"
    package.mkdir()
    text = "__all__ = ['listed']\ndef listed(): ...\ndef unused(): ...\ndef called(): ...\n"
    (package / "a.py").write_text(text)
    caller.write_text("import a\na.called()\ndef main(): ...\n")
    found = [(item.first_lineno, item.name) for item in _dead(package, caller)]
    assert found == [(3, "unused")]
