"""Keep the figures of a benchmark in a file: for each model or board the prices of several ways."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

P = TypeVar("P", bound="DataclassInstance")


def read_prices(path: Path, kind: type[P]) -> dict[str, dict[str, P]]:
    """Read the figures of a file, each a price of a kind; none where there is no file."""
    data = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {
        name: {way: kind(**figures) for way, figures in ways.items()} for name, ways in data.items()
    }


def write_prices(path: Path, kind: type[P], found: Mapping[str, Mapping[str, P]]) -> None:
    """Write figures; those of other models or boards stay."""
    merged = {**read_prices(path, kind), **found}
    data = {n: {w: asdict(p) for w, p in ways.items()} for n, ways in sorted(merged.items())}
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
