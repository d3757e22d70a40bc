"""Reads the lines that the application of a project prints."""

from __future__ import annotations

import re
from collections.abc import Sequence


def is_complete(text: str, models: Sequence[str]) -> bool:
    """Return whether the last line of the last model is there; the empty program has none."""
    if not models:
        return False
    last = rf"^{re.escape(models[-1])} stack \d+\r?\n"
    return re.search(last, text, re.MULTILINE) is not None


def status_of(text: str) -> int:
    """Return the application's status: 2 after an error, 1 if an output differs, else 0."""
    if re.search(r"^\w+ error: ", text, re.MULTILINE):
        return 2
    return 1 if " differs at " in text else 0
