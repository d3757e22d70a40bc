"""Text of JSON for large files: what the standard library writes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import IntEnum

import pytest

from microtir.support.json_text import indented, plain


class Level(IntEnum):
    LOW = 1


@dataclass(frozen=True)
class Inner:
    names: tuple[str, ...]
    level: Level = Level.LOW


@dataclass(frozen=True)
class Outer:
    inner: tuple[Inner, ...]
    others: dict[str, object]
    missing: None = None


@pytest.mark.parametrize(
    "value",
    [
        {}, [], (), "", "a\n\"b\" ä \x7f", 0, -7, 1 << 70, True, False, None, 0.1, 1e300,
        {"a": []}, {"a": {}}, [[]], [[1, 2], (3,)], {"b": {"c": [None, True, "x"]}, "a": 1.5},
        Level.LOW,
    ],
)  # fmt: skip
def test_the_text_is_that_of_the_standard_library(value: object) -> None:
    """Every kind of value, empty ones and nested ones."""
    assert indented(value) == json.dumps(value, indent=2)


def test_dataclasses_become_mappings() -> None:
    """What asdict gives, for dataclasses in sequences and mappings, too."""
    facts = Outer((Inner(("a", "b")), Inner(())), {"x": (Inner(("c",)),), "y": {"z": [1]}})
    assert plain(facts) == asdict(facts)
    assert indented(plain(facts)) == json.dumps(asdict(facts), indent=2)
