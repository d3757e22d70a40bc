"""Finds boards: in folders that the user names, then among those that come with microtir."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from microtir.boards.board import BOARD_FILE, Board, EmulatorKind, read_board
from microtir.boards.errors import BoardError
from microtir.errors import Fix, nearest_part
from microtir.support import resources

BOARD_PATH = "MICROTIR_BOARD_PATH"
"""Environment variable with more folders of boards, separated as PATH is."""


def load_board(name: str, board_dirs: Sequence[str | os.PathLike[str]] = ()) -> Board:
    """Load the board of this name.

    Args:
        name: of the folder with its `board.toml`.
        board_dirs: folders of boards to look in first; then those of MICROTIR_BOARD_PATH.

    Raises:
        BoardError: there is none, with the nearest name, or its file is wrong.
    """
    folders = _folders(board_dirs)
    if name not in folders:
        hint = nearest_part(name, folders)
        what = f"there is no board '{name}'"
        raise BoardError(
            f"{what}: {hint}" if hint else what,
            where="board",
            legal=", ".join(sorted(folders)),
            fix=f"to add a board, write NAME/{BOARD_FILE}, and name the folder that contains NAME",
        )
    return read_board(folders[name])


def all_boards(board_dirs: Sequence[str | os.PathLike[str]] = ()) -> tuple[Board, ...]:
    """Return every board, by name; BoardError if one of the files is wrong."""
    return tuple(read_board(folder) for _, folder in sorted(_folders(board_dirs).items()))


def board_names(board_dirs: Sequence[str | os.PathLike[str]] = ()) -> list[str]:
    """Return the names of all boards, sorted; their files are not read."""
    return sorted(_folders(board_dirs))


def emulated_like(board: Board) -> Fix:
    """Return how to do without an emulator of a board: the emulated one with the same core.

    Instructions are the same there, if the features of the core are, too; of several boards the
    first by name is meant.
    """
    same_core = [
        other
        for other in all_boards([board.folder.parent])
        if other.emulator is not None
        and other.emulator.kind is not EmulatorKind.NATIVE
        and other.target.core == board.target.core
        and other.target.features == board.target.features
    ]
    if not same_core:
        return Fix.of("`microtir boards` shows the emulator of each")
    name, why = same_core[0].name, "which has the same core and is emulated"
    return Fix(f"use the board '{name}', {why}", f"use --board {name}, {why}")


def _folders(board_dirs: Sequence[str | os.PathLike[str]]) -> dict[str, Path]:
    """Return board folders by name; the first place that has a name wins."""
    own_folders = [Path(place) for place in board_dirs]
    for place in own_folders:
        if not place.is_dir():
            raise BoardError("there is no such folder", where=str(place), legal="a board folder")
    environment = [Path(p) for p in os.environ.get(BOARD_PATH, "").split(os.pathsep) if p]
    folders: dict[str, Path] = {}
    for place in (*own_folders, *environment, resources.boards()):
        for folder in sorted(place.iterdir()) if place.is_dir() else ():
            if (folder / BOARD_FILE).is_file():
                folders.setdefault(folder.name, folder)
    return folders
