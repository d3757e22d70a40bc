"""Places in memory: of buffers in pools, of constant arrays in theirs, of states in a struct."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from microtir.errors import MemoryPlanError
from microtir.tir.ir import Buffer


@dataclass(frozen=True, slots=True)
class KeptBytes:
    """The bytes [low, high) of a buffer that hold something at the calls of a step.

    A step of a nest is called many times: `first` and `last` are low and high at the first and
    the last of these calls, since a buffer may be filled or read row by row.
    """

    step: int
    low: int
    high: int
    first: tuple[int, int]
    last: tuple[int, int]


@dataclass(frozen=True, slots=True)
class BufferPlacement:
    """The place of a workspace buffer and its lifetime (steps of main, inclusive).

    `pool` counts the pools of the plan, `offset` the bytes of that pool. `kept` says which of its
    bytes are in use at which step, `at_peak` how many of them at the moment of the pool's peak:
    one that is filled or read row by row keeps less than its size.
    """

    name: str
    offset: int  # bytes
    size: int  # bytes
    first_step: int
    last_step: int
    kept_bytes: tuple[KeptBytes, ...] = ()
    at_peak: int = 0  # bytes
    pool: int = 0


@dataclass(frozen=True, slots=True)
class PlannedPool:
    """The bytes that placement takes of a pool; none where no buffer went there.

    `lower_bound` is the largest sum of its buffers that live at the same step, less what outputs
    may share with inputs: no placement of these in one pool is smaller. At `peak_step` they keep
    most bytes. `canary` are the bytes of a pattern at each end, which both sizes include.
    """

    name: str
    size: int
    lower_bound: int
    alignment: int
    peak_step: int = 0
    canary: int = 0


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Result of placement, all sizes in bytes.

    `pools` are those of the configuration, in its order; what is said of the workspace is about
    all of them together. `verified` is the verdict of the independent checker. `state_size` is
    what lives from one run to the next, which is the caller's and no part of the workspace.
    """

    pools: tuple[PlannedPool, ...]
    placements: tuple[BufferPlacement, ...]
    verified: bool
    state_size: int = 0

    @property
    def workspace_size(self) -> int:
        return sum(pool.size for pool in self.pools)

    @property
    def budgeted(self) -> int:
        """Return what a budget of RAM counts: the workspace, and what outlives a run."""
        return self.workspace_size + self.state_size

    @property
    def lower_bound(self) -> int:
        return sum(pool.lower_bound for pool in self.pools)

    @property
    def alignment(self) -> int:
        return max(pool.alignment for pool in self.pools)

    @property
    def gap(self) -> int:
        return self.workspace_size - self.lower_bound


POOL_IDENTITY_BYTES = 4
"""Size of the number at the start of passed constants that identifies the code that reads them."""


@dataclass(frozen=True, slots=True)
class ConstantPlace:
    """The number of the pool that an array of constants lies in, and a byte of that."""

    pool: int
    offset: int


@dataclass(frozen=True, slots=True)
class PlannedConstants:
    """The bytes that arrays take of a constant pool; none where no array went there.

    Gaps of alignment count, and the identity of a pool that the application passes. A linker may
    leave other gaps between arrays of the code.
    """

    name: str
    size: int
    alignment: int


@dataclass(frozen=True, slots=True)
class ConstantPlan:
    """The constant pools of the configuration, in its order, and where arrays lie.

    An array is known by the first buffer that holds its data.  `refusal` says which arrays have
    room nowhere, if some have: a search goes on with another program then.
    """

    pools: tuple[PlannedConstants, ...] = ()
    places: Mapping[Buffer, ConstantPlace] = field(default_factory=lambda: MappingProxyType({}))
    refusal: MemoryPlanError | None = None


STATE_IDENTITY_BYTES = 4
"""Size of the first member of a state, which tells states of different models apart."""

TURN_BYTES = 4
"""Size of the member that counts whose turn it is, where states have several values."""


@dataclass(frozen=True, slots=True)
class KeptBlock:
    """The memory of a state, in bytes: of each value that runs take in turn, all of them aligned.

    Args:
        alignment: of each value.
        size: of one value.
        turns: how many there are.
    """

    alignment: int
    size: int
    turns: int = 1

    @property
    def stride(self) -> int:
        """Return the bytes from one value to the next."""
        return self.size if self.turns == 1 else _up(self.size, self.alignment)


@dataclass(frozen=True, slots=True)
class StateLayout:
    """The places of members in the struct of what outlives a run, as C lays it out; all in bytes.

    A model that keeps nothing has no struct, and one of size 0 here.
    """

    offsets: tuple[int, ...] = ()
    size: int = 0
    alignment: int = 1

    @staticmethod
    def of_blocks(blocks: Sequence[KeptBlock]) -> StateLayout:
        """Return the layout of states, and of a counter where some have several values."""
        members = [(block.alignment, block.turns * block.stride) for block in blocks]
        if any(block.turns > 1 for block in blocks):
            members.append((TURN_BYTES, TURN_BYTES))
        return StateLayout.of(members)

    @staticmethod
    def of(members: Sequence[tuple[int, int]]) -> StateLayout:
        """Return the layout of members, each its alignment and its size."""
        if not members:
            return StateLayout()
        offsets, end = [], STATE_IDENTITY_BYTES
        for alignment, size in members:
            offsets.append(_up(end, alignment))
            end = offsets[-1] + size
        strictest = max(STATE_IDENTITY_BYTES, *(alignment for alignment, _ in members))
        return StateLayout(tuple(offsets), _up(end, strictest), strictest)


def _up(offset: int, multiple: int) -> int:
    return -(-offset // multiple) * multiple
