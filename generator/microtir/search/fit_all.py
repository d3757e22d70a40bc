"""Fits a model to many boards side by side: one task a CPU, each known again without planning."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, as_completed

from microtir.boards import Board
from microtir.config import CompilationConfig
from microtir.graph.ir import Graph
from microtir.search.board_fit import BoardFit
from microtir.search.fit_cache import FitEntry

Done = Callable[[Sequence[BoardFit]], None]
"""Function that is given all results so far, the best first."""


def by_cpu(boards: Sequence[Board]) -> list[tuple[Board, ...]]:
    """Return the boards in groups that share every plan: only the name of the part differs."""
    groups: dict[str, list[Board]] = {}
    for board in boards:
        target = {key: value for key, value in board.target.export().items() if key != "model"}
        groups.setdefault(json.dumps(target, sort_keys=True, default=str), []).append(board)
    return [tuple(group) for group in groups.values()]


def fit_all(
    graph: Graph, config: CompilationConfig, boards: Sequence[Board], executor: Executor, done: Done
) -> tuple[BoardFit, ...]:
    """Return whether a model fits each board, the best first.

    Args:
        graph: the model as a frontend made it.
        config: what is asked for, but for the target.
        boards: to look at.
        executor: where CPUs are planned for.
        done: called at the begin and whenever more is known.
    """
    entries = [FitEntry.of(graph, config, group) for group in by_cpu(boards)]
    known = [entry.read() for entry in entries]
    fits = [fit for fits_of_board in known for fit in fits_of_board or ()]
    done(_sorted(fits))
    waiting = {
        executor.submit(_planned, graph, config, entry.boards): entry
        for entry, fits_of_board in zip(entries, known, strict=True)
        if fits_of_board is None
    }
    try:
        for future in as_completed(waiting):
            waiting[future].write(future.result())
            fits += future.result()
            done(_sorted(fits))
    finally:
        for future in waiting:
            future.cancel()
    return _sorted(fits)


def _planned(
    graph: Graph, config: CompilationConfig, boards: Sequence[Board]
) -> tuple[BoardFit, ...]:
    # What is known already is shown without waiting for the whole compiler to load.
    from microtir.search.fit_plans import fit_boards

    return fit_boards(graph, config.with_(targets=boards[0].target), boards)


def _sorted(fits: Sequence[BoardFit]) -> tuple[BoardFit, ...]:
    return tuple(sorted(fits, key=lambda fit: fit.rank))
