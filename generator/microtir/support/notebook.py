"""Shows facts in a notebook: as a small table that takes the colours of the page around it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

# Colours and background are inherited, so that it is as light or as dark as the notebook; the
# alignment is not, since notebooks have one of their own for tables of numbers.
_CELL = "text-align: left; vertical-align: top; padding: 1px 12px 1px 0; background: none"
_NAME = f"{_CELL}; opacity: 0.65; white-space: nowrap"


def facts_html(title: str, facts: Iterable[tuple[str, str]]) -> str:
    """Return a fragment of HTML with a title and pairs of name and sentence, all of them text."""
    rows = "".join(
        f'<tr style="background: none"><td style="{_NAME}">{escape(name)}</td>'
        f'<td style="{_CELL}">{escape(sentence)}</td></tr>'
        for name, sentence in facts
    )
    return (
        f'<div class="microtir"><b>{escape(title)}</b>'
        f'<table style="border: none; margin: 2px 0 0 0">{rows}</table></div>'
    )
