"""Keeps what `fit` found out, under a name that changes with everything that it follows from."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from functools import cache
from pathlib import Path

import microtir
from microtir.boards import Board
from microtir.config import CompilationConfig
from microtir.errors import OutputError
from microtir.graph.ir import Graph
from microtir.search.board_fit import BoardFit
from microtir.support.cache_folder import cache_folder
from microtir.support.files import replace_file
from microtir.support.reading import WrongDataError, check, parse_json


@dataclass(frozen=True, slots=True)
class FitEntry:
    """The place of what is known of a model on boards of one CPU.

    The name of the file is a digest of the model, the configuration, the boards' files and
    microtir itself, so that nothing that has become wrong is ever found.
    """

    boards: tuple[Board, ...]
    file: Path

    @staticmethod
    def of(graph: Graph, config: CompilationConfig, boards: Sequence[Board]) -> FitEntry:
        """Return the entry of a model, as a frontend made it, with what is asked for."""
        digest = hashlib.sha256(pickle.dumps(graph))
        for board in boards:
            digest.update(board.file.read_bytes())
        digest.update(config.to_json().encode() + _of_microtir())
        return FitEntry(tuple(boards), cache_folder() / "fit" / f"{digest.hexdigest()[:32]}.json")

    def read(self) -> tuple[BoardFit, ...] | None:
        """Return what was written; None if nothing was, or nothing that can be read."""
        try:
            fits: tuple[BoardFit, ...] = check(
                parse_json(self.file.read_bytes()), tuple[BoardFit, ...]
            )
        except (OSError, WrongDataError):
            return None
        is_of_these = [fit.board for fit in fits] == [board.name for board in self.boards]
        return fits if is_of_these else None

    def write(self, fits: Sequence[BoardFit]) -> None:
        """Keep what was found out; nothing happens where the folder cannot be written."""
        text = json.dumps([asdict(fit) for fit in fits], default=_value)
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self.file, text.encode())
        except (OSError, OutputError):
            return


def _value(member: object) -> object:
    assert isinstance(member, Enum), "all other fields of a fit are numbers and texts"
    return member.value


@cache
def _of_microtir() -> bytes:
    """Return a digest of the program itself, by the sizes and times of its files."""
    root = Path(microtir.__file__).parent
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(name for name in files if not name.endswith(".pyc")):
            status = (Path(folder) / name).stat()
            digest.update(f"{folder}/{name}:{status.st_size}:{status.st_mtime_ns}".encode())
    return digest.digest()
