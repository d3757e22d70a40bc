"""Where everything lies: buffers in the pools of the workspace, arrays in those of constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from microtir.errors import MemoryPlanError
from microtir.tir.ir import Buffer


@dataclass(frozen=True, slots=True)
class KeptBytes:
    """At the calls of a step a buffer holds something, all of it in its bytes [low, high).

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
    """Where a workspace buffer lies and when it lives (steps of main, inclusive).

    `pool` counts the pools of the plan, `offset` the bytes of that pool. `kept` says which of its
    bytes are in use at which step, `at_peak` how many of them at the moment of the pool's peak:
    one that is filled or read row by row keeps less than its size.
    """

    name: str
    offset: int  # bytes
    size: int  # bytes
    first_step: int
    last_step: int
    kept: tuple[KeptBytes, ...] = ()
    at_peak: int = 0  # bytes
    pool: int = 0


@dataclass(frozen=True, slots=True)
class PlannedPool:
    """What placement takes of a pool, in bytes; nothing where no buffer went there.

    `lower_bound` is the largest sum of its buffers that live at the same step, less what outputs
    may share with inputs: no placement of these in one pool is smaller. At `peak_step` they keep
    most bytes.
    """

    name: str
    size: int
    lower_bound: int
    alignment: int
    peak_step: int = 0


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Result of placement, all sizes in bytes.

    `pools` are those of the configuration, in its order; what is said of the workspace is about
    all of them together. `verified` is the verdict of the independent checker.
    """

    pools: tuple[PlannedPool, ...]
    placements: tuple[BufferPlacement, ...]
    verified: bool

    @property
    def workspace_size(self) -> int:
        return sum(pool.size for pool in self.pools)

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
"""At the start of constants that the application passes: a number of the code that reads them."""


@dataclass(frozen=True, slots=True)
class ConstantPlace:
    """The number of the pool that an array of constants lies in, and a byte of that."""

    pool: int
    offset: int


@dataclass(frozen=True, slots=True)
class PlannedConstants:
    """What arrays take of a constant pool, in bytes; nothing where none went there.

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
