"""Takes the memories of a board as limits of a report."""

from __future__ import annotations

from microtir.boards import Board
from microtir.projects.capacity import memory_uses
from microtir.report.collect import LimitsOf
from microtir.report.data import ReportedLimit


def limits_of_board(board: Board) -> LimitsOf:
    """Return what a program takes of each memory of a board, and what there is."""
    return lambda artifact, code: [
        ReportedLimit(
            f"{board.name} {use.memory.name}",
            use.what,
            use.memory.size,
            use.bytes,
            f"{use.largest.what}, {use.largest.bytes:,} bytes",
        )
        for use in memory_uses(board, artifact, code)
    ]
