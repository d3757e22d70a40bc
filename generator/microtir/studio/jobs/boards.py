"""Fits a model to all boards, and tells the rows of the table as they come."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from microtir.boards import all_boards, load_board
from microtir.config import config_from_flags
from microtir.errors import ToolError
from microtir.search.board_fit import BoardFit
from microtir.search.fit_all import fit_all
from microtir.search.fit_table import COLUMNS, RIGHT, row, title
from microtir.studio.events import Emit, progress
from microtir.studio.models import ModelFile

_PATIENT = 10
"""Niceness of this job: it gives way to plans, for which somebody waits."""


@dataclass(frozen=True, slots=True)
class Boards:
    """A model with the goal that it is planned for."""

    model: ModelFile
    optimize: str

    def run(self, emit: Emit) -> None:
        """Tell the whole table whenever more is known."""
        emit(progress("reading the model"))
        config = config_from_flags({"--optimize": self.optimize})
        graph = self.model.read().graph
        emit(progress("planning for every CPU"))
        assert graph is not None, "a frontend read the graph"
        boards = [board for board in all_boards() if board.code is not None]

        def tell(fits: Sequence[BoardFit]) -> None:
            emit(self._table(fits, len(boards)))

        try:
            # Forked, they have the compiler already, and leave nothing behind when killed.
            fork = multiprocessing.get_context("fork")
            with ProcessPoolExecutor(
                os.cpu_count() or 1, fork, initializer=os.nice, initargs=(_PATIENT,)
            ) as executor:
                tell(fit_all(graph, config, boards, executor, tell))
        except BrokenProcessPool:
            raise ToolError(
                "a process ended before its plan was complete",
                where="boards",
                fix="choose one board or CPU; the process may have needed more memory than this "
                "machine has",
            ) from None

    def _table(self, fits: Sequence[BoardFit], total: int) -> dict[str, object]:
        said = title(self.model.label, self.optimize, fits)
        return {
            "event": "boards",
            "title": said if len(fits) == total else f"{len(fits)} of {total} boards",
            "columns": COLUMNS,
            "right": RIGHT,
            "rows": [
                {
                    "board": f.board,
                    "title": load_board(f.board).title,
                    "fits": f.fits,
                    "cells": row(f),
                }
                for f in fits
            ],
        }
