"""Holds what a model takes on a board, and whether it fits."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.boards.board import MemoryKind


@dataclass(frozen=True, slots=True)
class MemoryFit:
    """The bytes that a program takes of a board's memory, with the stack that is usual there."""

    name: str
    kind: MemoryKind
    taken: int
    size: int

    @property
    def missing(self) -> int:
        """Return the bytes that the memory has too few, or 0."""
        return max(self.taken - self.size, 0)


@dataclass(frozen=True, slots=True)
class BoardFit:
    """The resources that a model takes on a board.

    Attributes:
        board: its name.
        cpu: as a target names it.
        flags: what was added to the configuration so that it fits, or that came nearest to it.
        memories: those that the program lies in; none where it could not be compiled.
        instructions: of one run, by planning's estimate.
        cycles: the same, without wait states of the memories.
        clock_hz: of the board; 0 where it has no meaning.
        refusal: why the model could not be compiled for it, or empty.
    """

    board: str
    cpu: str
    flags: str
    memories: tuple[MemoryFit, ...]
    instructions: int
    cycles: int
    clock_hz: int
    refusal: str = ""

    @property
    def fits(self) -> bool:
        return not self.refusal and not self.missing

    @property
    def missing(self) -> int:
        """Return the bytes that all memories together have too few."""
        return sum(memory.missing for memory in self.memories)

    @property
    def seconds(self) -> float | None:
        """Return the estimated time of a run; None where the board has no clock."""
        return self.cycles / self.clock_hz if self.clock_hz and not self.refusal else None

    @property
    def rank(self) -> tuple[object, ...]:
        """Return what fits are sorted by: those that fit as asked, with flags, not; the fastest."""
        time = float("inf") if self.seconds is None else self.seconds
        return (bool(self.refusal), self.missing, bool(self.flags), time, self.board)

    def memory(self, kind: MemoryKind) -> MemoryFit | None:
        """Return the fullest memory of a kind that the program lies in."""
        return max(self.of(kind), key=lambda memory: memory.taken / memory.size, default=None)

    def of(self, kind: MemoryKind) -> list[MemoryFit]:
        return [memory for memory in self.memories if memory.kind is kind]
