"""Knows boards: their facts, where they are found, and their compilers."""

from __future__ import annotations

from microtir.boards.board import Board, Console, Label, ProjectType
from microtir.boards.search import all_boards, load_board

__all__ = [
    "Board",
    "Console",
    "Label",
    "ProjectType",
    "all_boards",
    "load_board",
]
