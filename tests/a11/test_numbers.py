"""Every defect of the list has a regression test, which says its number in its name."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
COUNT = 27


def numbers() -> dict[int, list[str]]:
    """Return the tests of each defect: `test_d5_…`, also several numbers in one name."""
    found: dict[int, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for name in re.findall(r"^def (test_d\d+_\w+)", path.read_text("utf-8"), re.MULTILINE):
            for number in re.findall(r"(?<=_d)\d+(?=_)", name):
                found.setdefault(int(number), []).append(f"{path.name}::{name}")
    return found


def test_every_defect_has_a_test() -> None:
    """1 to 27, none left out and none invented."""
    assert set(numbers()) == set(range(1, COUNT + 1))
