"""Makes the table of boards one page that needs no script or style from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from microtir.search.board_fit import BoardFit
from microtir.search.fit_table import COLUMNS, NOTE, RIGHT, row
from microtir.support.templates import render_page


def to_page(title: str, fits: Sequence[BoardFit]) -> str:
    """Return the page.

    Args:
        title: says the result in a line.
        fits: the boards in order.
    """
    rows = [(fit.fits, row(fit)) for fit in fits]
    return render_page(
        "search/fits.html.j2", title=title, columns=COLUMNS, rows=rows, right=RIGHT, note=NOTE
    )
