"""Memories to place buffers in, and which buffer goes to which of them.

The buffers that are used most for their size choose first, each the pool in which its own reads
and writes cost least; one that does not fit there any more goes to the next.  Whether it fits is
tried by placing it with what is in the pool already, since buffers share bytes over time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from microtir.config import CompilationConfig
from microtir.config.pools import PoolInfo
from microtir.memory.lifetimes import Lifetime, lower_bound
from microtir.memory.placement import workspace_size
from microtir.memory.traffic import Traffic
from microtir.tir.ir import Buffer
from microtir.tir.memory_plan import POOL_IDENTITY_BYTES

_WORD = 4  # bytes that one access moves, and that follow one latency, where nothing is stated
_CANARY = 16  # bytes

Fit = Callable[[Sequence[Lifetime], int], Mapping[Buffer, int]]
"""Offsets of buffers in one pool, at multiples of an alignment."""


@dataclass(frozen=True, slots=True)
class Pool:
    """A memory: bytes that it has, or None for no limit, and what a byte costs there.

    `alignment` is the least one of the pool and of every buffer in it, `reserved` are bytes at its
    start that no buffer takes, and `canary` are those of a pattern, at each end. Costs are in
    seconds for pools whose clock is known, and comparable within one configuration only.
    """

    name: str = "workspace"
    alignment: int = 1
    limit: int | None = None
    read_cost: float = 0.0
    write_cost: float = 0.0
    reserved: int = 0
    canary: int = 0

    def taken(self, lives: Sequence[Lifetime], size: int) -> tuple[int, int, int]:
        """Return the alignment of a pool with buffers of a size, its size, and that of a canary.

        Canaries are whole words, as many at each end, and buffers stay aligned behind the first.
        """
        alignment = max((self.alignment, *(life.alignment for life in lives)))
        if not lives or not self.canary:
            return alignment, size, 0
        canary = max(self.canary, alignment)
        return alignment, -(-size // _WORD) * _WORD + 2 * canary, canary

    def cost(self, moved: Traffic) -> float:
        """Return what the traffic of a buffer costs if it lies here."""
        return moved.read * self.read_cost + moved.written * self.write_cost


def pools_of(config: CompilationConfig) -> tuple[Pool, ...]:
    """Return the workspace pools of a configuration, in its order.

    What is not stated is no reason to avoid a pool: a clock counts as the fastest of the others,
    a bandwidth as a word in each cycle.
    """
    pools = _pools(config.workspace_pools, config.workspace_alignment())
    if not config.canaries:
        return pools
    return tuple(
        replace(pool, canary=_CANARY, alignment=max(pool.alignment, _WORD)) for pool in pools
    )


def constant_pools_of(config: CompilationConfig) -> tuple[Pool, ...]:
    """Return the constant pools of a configuration, in its order, likewise.

    What the application passes begins with a number that says the identity of the code.
    """
    passed = config.passed_constant_pools()
    return tuple(
        replace(
            pool, reserved=POOL_IDENTITY_BYTES, alignment=max(pool.alignment, POOL_IDENTITY_BYTES)
        )
        if info in passed
        else pool
        for info, pool in zip(
            config.constant_pools,
            _pools(config.constant_pools, config.constant_alignment()),
            strict=True,
        )
    )


def _pools(infos: Sequence[PoolInfo], alignment: int) -> tuple[Pool, ...]:
    fastest = max(1, *(info.pool_info_properties.clock_frequency_hz for info in infos))
    return tuple(_pool(info, alignment, fastest) for info in infos)


def _pool(info: PoolInfo, alignment: int, fastest: int) -> Pool:
    known = info.pool_info_properties
    clock = known.clock_frequency_hz if known.clock_frequency_hz > 0 else fastest

    def stated(bytes_: int) -> int:
        return bytes_ if bytes_ > 0 else _WORD

    def cost(latency: int, bandwidth: int) -> float:
        return (latency / stated(known.target_burst_bytes) + 1 / stated(bandwidth)) / clock

    return Pool(
        info.pool_name,
        max(alignment, known.byte_alignment),
        info.size_limit,
        cost(known.read_latency_cycles, known.read_bandwidth_bytes_per_cycle),
        cost(known.write_latency_cycles, known.write_bandwidth_bytes_per_cycle),
    )


def assigned(
    lives: Sequence[Lifetime],
    pools: Sequence[Pool],
    moved: Mapping[Buffer, Traffic],
    candidates: Mapping[Buffer, Sequence[int]],
    fit: Fit,
) -> tuple[tuple[Lifetime, ...], ...]:
    """Spread buffers over pools.

    Args:
        lives: of the buffers.
        pools: at least one.
        moved: the traffic of each buffer.
        candidates: numbers of the pools in which a buffer may lie; all for one that is missing.
        fit: how the buffers of a pool are placed.

    Returns:
        The lifetimes in each pool, in the order of `lives`. A pool exceeds its limit only where
        no way was found to keep to all of them; then by as little as was found.
    """
    hottest = sorted(lives, key=lambda life: -moved[life.buffer].bytes / max(life.size, 1))
    # Where the hottest leave no room for the large ones, these choose first.
    largest = sorted(lives, key=lambda life: -life.size)
    # What is tried is what is placed at last: the same buffers in the same order.
    positions = {life.buffer: position for position, life in enumerate(lives)}
    tried: list[_Pools] = []
    for order in (hottest, largest):
        taken = _Pools(pools, fit, positions, [[] for _ in pools])
        for life in order:
            mine = candidates.get(life.buffer, range(len(pools)))
            taken.add(life, sorted(mine, key=lambda n: pools[n].cost(moved[life.buffer])))
        tried.append(taken)
        if taken.excess() == 0:
            break
    best = min(tried, key=_Pools.excess).numbers()
    return tuple(
        _of_one_pool([life for life in lives if best[life.buffer] == number])
        for number in range(len(pools))
    )


def _of_one_pool(lives: Sequence[Lifetime]) -> tuple[Lifetime, ...]:
    """Return lifetimes of one pool: what is in another shares no bytes."""
    here = frozenset(life.buffer for life in lives)
    return tuple(
        replace(life, shared={b: most for b, most in life.shared.items() if b in here})
        for life in lives
    )


@dataclass(frozen=True, slots=True)
class _Pools:
    """Pools that fill up; `positions` is the order in which a pool's buffers are placed."""

    pools: Sequence[Pool]
    fit: Fit
    positions: Mapping[Buffer, int]
    members: Sequence[list[Lifetime]]

    def add(self, life: Lifetime, numbers: Sequence[int]) -> None:
        """Take a buffer into the first pool that has room, else into the one that lacks least."""
        for number in numbers:
            if self._fits(number, life):
                break
        else:
            number = min(numbers, key=lambda n: self._excess(n, [*self.members[n], life]))
        self.members[number].append(life)

    def numbers(self) -> dict[Buffer, int]:
        return {life.buffer: n for n, lives in enumerate(self.members) for life in lives}

    def excess(self) -> int:
        """Return the bytes by which pools exceed their limits."""
        return sum(self._excess(n, lives) for n, lives in enumerate(self.members))

    def _fits(self, number: int, life: Lifetime) -> bool:
        limit = self.pools[number].limit
        lives = [*self.members[number], life]
        # What no placement can do needs no trial.
        return limit is None or (
            lower_bound(_of_one_pool(lives)) <= limit and self._excess(number, lives) == 0
        )

    def _excess(self, number: int, lives: Sequence[Lifetime]) -> int:
        pool = self.pools[number]
        if pool.limit is None or not lives:
            return 0
        mine = _of_one_pool(sorted(lives, key=lambda life: self.positions[life.buffer]))
        size = workspace_size(mine, self.fit(mine, pool.alignment))
        return max(pool.taken(mine, size)[1] - pool.limit, 0)
