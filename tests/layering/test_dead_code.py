"""No dead code in the package."""

from __future__ import annotations

from pathlib import Path

import pytest
from vulture import Vulture
from vulture.core import Item

from tests.layering.source import PACKAGE, report
from tests.layering.vulture_whitelist import WHITELIST

# Fields of dataclasses and members of enums are data: read through `fields()` or by value.
KINDS = frozenset({"class", "function", "import", "method", "property", "unreachable_code"})


def _dead(path: Path) -> list[Item]:
    """What nothing below `path` uses; typer's verbs are used by being declared."""
    scanner = Vulture(ignore_decorators=["@*.command", "@*.callback"])
    scanner.scavenge([str(path)])
    return [item for item in scanner.get_unused_code(min_confidence=60) if item.typ in KINDS]


@pytest.fixture(scope="module")
def dead() -> list[Item]:
    """Dead code of the package, before the whitelist."""
    return _dead(PACKAGE)


def test_package_has_no_dead_code(dead: list[Item]) -> None:
    """What the package defines it uses, or lists in an `__all__` or in the whitelist.

    Code that only a test uses is dead, too.
    """
    found = [
        f"{Path(item.filename).relative_to(PACKAGE)}:{item.first_lineno}: "
        f"{item.typ} '{item.name}' is used by no part of the package"
        for item in dead
        if item.name not in WHITELIST
    ]
    assert not found, report(found)


def test_whitelist_has_no_leftovers(dead: list[Item]) -> None:
    """Every name of the whitelist is one that would be reported without it."""
    assert WHITELIST.keys() <= {item.name for item in dead}


def test_dead_function_is_found(tmp_path: Path) -> None:
    """A function that nobody calls is found; one that is listed in `__all__` is used."""
    path = tmp_path / "a.py"
    path.write_text("__all__ = ['used']\ndef used(): ...\ndef unused(): ...\n")
    assert [(item.first_lineno, item.name) for item in _dead(path)] == [(3, "unused")]
