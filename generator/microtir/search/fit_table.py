"""Words what is known of boards as a table: one text for the terminal, the page and the studio."""

from __future__ import annotations

from collections.abc import Sequence

from microtir.boards.board import MemoryKind
from microtir.search.board_fit import BoardFit, MemoryFit
from microtir.support.quantities import duration, size, three_digits
from microtir.support.templates import render_page

COLUMNS = ("board", "CPU", "RAM", "flash", "est. cycles", "est. time", "verdict")
RIGHT = ("RAM", "flash", "est. cycles", "est. time")
NOTE = (
    "RAM and flash: bytes that the model needs, of the bytes that the board has. All figures are "
    "estimates. Cycles and time do not include wait states."
)


def title(file: str, goal: str, fits: Sequence[BoardFit]) -> str:
    """Return the result in a line."""
    room = sum(fit.fits for fit in fits)
    return f"{file}: fits {room} of {len(fits)} boards at --optimize {goal}"


def row(fit: BoardFit) -> tuple[str, ...]:
    """Return the cells of a board."""
    seconds = fit.seconds
    return (
        fit.board,
        fit.cpu,
        _of(fit.memory(MemoryKind.RAM)),
        _of(fit.memory(MemoryKind.FLASH)),
        three_digits(fit.cycles) if fit.cycles else "",
        duration(seconds) if seconds else "",
        _verdict(fit),
    )


def to_page(title: str, fits: Sequence[BoardFit]) -> str:
    """Return one page that needs no script or style from elsewhere.

    Args:
        title: says the result in a line.
        fits: the boards in order.
    """
    rows = [(fit.fits, row(fit)) for fit in fits]
    return render_page(
        "search/fits.html.j2", title=title, columns=COLUMNS, rows=rows, right=RIGHT, note=NOTE
    )


def _of(memory: MemoryFit | None) -> str:
    return f"{memory.taken:,} of {size(memory.size)}" if memory else ""


def _verdict(fit: BoardFit) -> str:
    if fit.refusal:
        return f"not compiled: {fit.refusal}"
    if fit.fits:
        return f"fits with {fit.flags}" if fit.flags else "fits"
    parts = [f"{m.missing:,} bytes of {m.name}" for m in fit.memories if m.missing]
    at = f" at {fit.flags}" if fit.flags else ""
    return f"misses {' and '.join(parts)}{at}"
