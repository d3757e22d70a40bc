"""Words what is known of boards as a table: one text for the terminal, the page and the studio."""

from __future__ import annotations

from collections.abc import Sequence

from microtir.boards.board import MemoryKind
from microtir.search.board_fit import BoardFit, MemoryFit
from microtir.support.quantities import duration, size, three_digits

COLUMNS = ("board", "CPU", "RAM", "flash", "est. cycles", "est. time", "verdict")
RIGHT = ("RAM", "flash", "est. cycles", "est. time")
NOTE = (
    "RAM and flash: needed of what there is. All figures are estimates; cycles and time have no\n"
    "wait states."
)


def title(file: str, goal: str, fits: Sequence[BoardFit]) -> str:
    """Return the result in a line."""
    room = sum(found.fits for found in fits)
    return f"{file}: fits {room} of {len(fits)} boards at --optimize {goal}"


def row(found: BoardFit) -> tuple[str, ...]:
    """Return the cells of a board."""
    seconds = found.seconds
    return (
        found.board,
        found.cpu,
        _of(found.memory(MemoryKind.RAM)),
        _of(found.memory(MemoryKind.FLASH)),
        three_digits(found.cycles) if found.cycles else "",
        duration(seconds) if seconds else "",
        _verdict(found),
    )


def _of(memory: MemoryFit | None) -> str:
    return f"{memory.taken:,} of {size(memory.size)}" if memory else ""


def _verdict(found: BoardFit) -> str:
    if found.refusal:
        return f"not compiled: {found.refusal}"
    if found.fits:
        return f"fits with {found.flags}" if found.flags else "fits"
    parts = [f"{m.missing:,} bytes of {m.name}" for m in found.memories if m.missing]
    at = f" at {found.flags}" if found.flags else ""
    return f"misses {' and '.join(parts)}{at}"
