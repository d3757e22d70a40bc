"""Sums up what a model takes of RAM: the one sum that everything means by it, and by "fits"."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.codegen.metadata import MemoryData, Metadata, PortData

_SCRATCH = "_scratch"  # how the planner names memory that a kernel works in


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes of RAM, each counted once, wherever it lies.

    Args:
        workspace: activations and line buffers, with inputs and outputs that lie among them.
        scratch: what kernels need beyond them.
        io: inputs and outputs that the caller has memory for: not those in the workspace, and not
            those whose rows change hands one by one.
        state: what outlives a run.
        data: all other variables of the model.
        stack: what was measured, or what is set aside.
        reserve: what the board keeps for others.
    """

    workspace: int
    scratch: int
    io: int
    state: int = 0
    data: int = 0
    stack: int = 0
    reserve: int = 0

    @property
    def planned(self) -> int:
        return self.workspace + self.scratch

    @property
    def budgeted(self) -> int:
        """Return what a budget of RAM is about."""
        return self.planned + self.state

    @property
    def of_model(self) -> int:
        """Return everything that is there between two runs."""
        return self.budgeted + self.io + self.data

    @property
    def total(self) -> int:
        return self.of_model + self.stack + self.reserve


def footprint(facts: Metadata, *, data: int = 0, stack: int = 0, reserve: int = 0) -> Footprint:
    """Return the footprint of a program; of functions that are no model it is what is given.

    Args:
        facts: of the program.
        data: its variables outside of pools, as far as they are known.
        stack: of a run.
        reserve: of the board.
    """
    memory = facts.memory
    workspace, scratch = (0, 0) if memory is None else _workspace(memory)
    io = sum(map(_outside, facts.ports))
    state = facts.state.size if facts.state is not None else 0
    return Footprint(workspace, scratch, io, state, data, stack, reserve)


def _workspace(memory: MemoryData) -> tuple[int, int]:
    """Return the bytes of buffers, and what scratch adds to dead activations."""
    ends = dict.fromkeys((pool.name for pool in memory.pools), 0)
    for p in memory.placements:
        if not p.name.endswith(_SCRATCH):
            ends[p.pool] = max(ends[p.pool], p.offset + p.size)
    workspace = sum(ends.values())
    return workspace, memory.workspace_size - workspace


def _outside(port: PortData) -> int:
    is_whole = port.offset is None and port.row_bytes is None
    return port.bytes if is_whole else 0
