"""Makes the table of boards one page that needs no script or style from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from microtir.support.templates import render_page


def to_page(
    title: str,
    columns: Sequence[str],
    rows: Sequence[tuple[bool, Sequence[str]]],
    *,
    right: Sequence[str],
    note: str,
) -> str:
    """Return the page.

    Args:
        title: says the result in a line.
        columns: their heads.
        rows: whether the model fits, and the cells of a board.
        right: columns of numbers.
        note: says what the numbers are.
    """
    return render_page(
        "search/fits.html.j2", title=title, columns=columns, rows=rows, right=right, note=note
    )
