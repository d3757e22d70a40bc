"""Plans a model for the boards of a CPU, and looks for what makes it fit those with little memory.

The plan of the configuration is tried first.  Where a board has too little of a memory, remedies
for that kind of memory are, the cheapest first, until one fits; boards of one CPU share every
plan.  All figures are of planning: no C compiler is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property

from microtir import driver
from microtir.artifact import Artifact
from microtir.boards import Board
from microtir.boards.board import MemoryKind
from microtir.config import CompilationConfig, config_from_flags
from microtir.errors import ConfigError, MicrotirError
from microtir.graph.ir import Graph
from microtir.module.ir_module import IRModule
from microtir.projects.capacity import memory_uses
from microtir.search.board_fit import BoardFit, MemoryFit
from microtir.search.estimates import estimated_cost
from microtir.search.pareto import ProgramCost
from microtir.search.suggestions import Suggestion

_RAM, _LEAST_RAM = {"--optimize": ("ram",)}, {"--optimize": ("ram-least",)}
_IN_WORKSPACE = {"--pass-config": ("memory.use_workspace_io=1",)}
_BY_ROWS = {"--executor-aot-row-fed-inputs": ("1",)}
_SMALLEST = (
    Suggestion("ram", {**_LEAST_RAM, **_IN_WORKSPACE}),
    Suggestion("ram", {**_LEAST_RAM, **_BY_ROWS}),
)
"""Suggestions that take the least RAM: where neither fits, no other one does."""

_REMEDIES = (
    Suggestion("ram", _RAM),
    Suggestion("ram", _LEAST_RAM),
    Suggestion("ram", {**_RAM, **_IN_WORKSPACE}),
    _SMALLEST[0],
    Suggestion("ram", {**_RAM, **_BY_ROWS}),
    _SMALLEST[1],
    Suggestion("flash", {"--optimize": ("flash",)}),
)
"""Suggestions that may help, by the kind of memory; the cheapest first.

The goal is the compiler's business alone; how inputs are handed over is the application's, too.
"""


class _Plan:
    """A program of a model for a CPU, compiled where the first board asks for it."""

    def __init__(self, graph: Graph, config: CompilationConfig, remedy: Suggestion | None) -> None:
        self._graph, self._config, self.remedy = graph, config, remedy

    def is_for(self, kind: MemoryKind) -> bool:
        """Return whether it is a remedy for too little of a kind of memory."""
        return self.remedy is not None and self.remedy.topic == kind.value

    @cached_property
    def artifact(self) -> Artifact:
        """Return the program; MicrotirError where there is none."""
        config = config_from_flags(self.remedy.flags, self._config) if self.remedy else self._config
        return driver.build(IRModule(graph=self._graph, config=config))

    @cached_property
    def cost(self) -> ProgramCost:
        return estimated_cost(self.artifact)

    def fits(self, board: Board) -> Iterator[BoardFit]:
        """Yield what the program takes on a board, unless what was asked for rules it out."""
        with suppress(ConfigError):
            yield self.fit(board)

    def fit(self, board: Board) -> BoardFit:
        """Return what the program takes on a board; MicrotirError where there is none."""
        cost = self.cost
        code = self.artifact.metadata.code_bytes_estimate
        return BoardFit(
            board=board.name,
            cpu=cpu_of(board),
            flags=self.remedy.text if self.remedy else "",
            memories=tuple(
                MemoryFit(use.memory.name, use.memory.kind, use.bytes, use.memory.size)
                for use in memory_uses(board, self.artifact, code)
            ),
            instructions=cost.instructions,
            cycles=cost.cycles,
            clock_hz=board.clock_hz,
        )


def cpu_of(board: Board) -> str:
    """Return the name of a board's CPU or architecture."""
    return board.target.mcpu or board.target.march or "any"


def fit_boards(
    graph: Graph, config: CompilationConfig, boards: Sequence[Board]
) -> tuple[BoardFit, ...]:
    """Return whether a model fits boards of one CPU, in their order.

    Args:
        graph: the model as a frontend made it.
        config: what is asked for.
        boards: that its target is that of, but for the name of the part, which changes no plan.
    """
    plans = [_Plan(graph, config, remedy) for remedy in (None, *_REMEDIES)]
    return tuple(_best(board, plans) for board in boards)


def _best(board: Board, plans: Sequence[_Plan]) -> BoardFit:
    """Return the first program that fits a board, else the one that misses least."""
    try:
        asked = plans[0].fit(board)
    except MicrotirError as error:
        return BoardFit(board.name, cpu_of(board), "", (), 0, 0, board.clock_hz, error.what)
    best = asked
    for other in _helpful(board, plans[1:], asked):
        if other.missing < best.missing:
            best = other
        if best.fits:
            break
    return best


def _helpful(board: Board, plans: Sequence[_Plan], asked: BoardFit) -> Iterator[BoardFit]:
    """Yield what the board's program becomes with each remedy for what is exceeded.

    A plan takes seconds: where the smallest has no room, it is the nearest, and others are not
    made.
    """
    exceeded = {memory.kind for memory in asked.memories if memory.missing}
    tried = [plan for plan in plans if any(map(plan.is_for, exceeded))]
    if MemoryKind.RAM in exceeded:
        smallest = [plan for plan in tried if plan.remedy in _SMALLEST]
        fits = [fit for plan in smallest for fit in plan.fits(board)]
        if all(memory.missing for fit in fits for memory in fit.of(MemoryKind.RAM)):
            tried = [*smallest, *(plan for plan in tried if plan.is_for(MemoryKind.FLASH))]
    for plan in tried:
        yield from plan.fits(board)
