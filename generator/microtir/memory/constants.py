"""Constant arrays in pools: those that are read most for their size choose the fastest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from microtir.config import CompilationConfig
from microtir.errors import MemoryPlanError
from microtir.memory.limits import layer_text, listed
from microtir.memory.pools import Pool, constant_pools_of
from microtir.memory.traffic import Traffic
from microtir.tir.ir import Buffer, PrimFunc
from microtir.tir.memory_plan import ConstantPlace, ConstantPlan, PlannedConstants


@dataclass(frozen=True, slots=True)
class Constant:
    """An array: a buffer that holds it, its bytes, alignment, and the bytes that a run reads.

    `name` and `users`, the functions that read it, are for diagnostics.
    """

    buffer: Buffer
    name: str
    bytes: int
    alignment: int
    users: Sequence[str]
    read: int


def place_constants(
    config: CompilationConfig,
    arrays: Sequence[Constant],
    functions: Mapping[str, PrimFunc] = MappingProxyType({}),
) -> ConstantPlan:
    """Return the pool of each array and its place there; nothing where no pool is declared.

    Args:
        config: with the pools.
        arrays: all of the program.
        functions: those that read them, by name, where they are layers of a model.
    If one has room in no pool, the plan holds a refusal: it names arrays, readers and bytes.
    """
    pools = constant_pools_of(config)
    places: dict[Buffer, int] = {}
    if not pools:
        return ConstantPlan()
    hottest = sorted(arrays, key=lambda a: -a.read / max(a.bytes, 1))
    largest = sorted(arrays, key=lambda a: -a.bytes)
    for order in (hottest, largest):
        places = {}
        for array in order:
            for number in _by_cost(array, pools):
                same_pool = [a for a in arrays if places.get(a.buffer) == number or a is array]
                limit = pools[number].limit
                if limit is None or _size(same_pool, pools[number]) <= limit:
                    places[array.buffer] = number
                    break
        if len(places) == len(arrays):
            return _plan(arrays, pools, places)
    return ConstantPlan(refusal=_exhausted(arrays, pools, places, functions))


def _plan(
    arrays: Sequence[Constant], pools: Sequence[Pool], pool_of: Mapping[Buffer, int]
) -> ConstantPlan:
    planned: list[PlannedConstants] = []
    places: dict[Buffer, ConstantPlace] = {}
    for number, pool in enumerate(pools):
        mine = [array for array in arrays if pool_of[array.buffer] == number]
        starts = _starts(mine, pool)
        places |= {b: ConstantPlace(number, start) for b, start in starts.items()}
        alignment = max((pool.alignment, *(array.alignment for array in mine)))
        planned.append(PlannedConstants(pool.name, _size(mine, pool), alignment))
    return ConstantPlan(tuple(planned), MappingProxyType(places))


def _starts(arrays: Sequence[Constant], pool: Pool) -> Mapping[Buffer, int]:
    """Return the byte at which each of a pool's arrays begins: one after another, each aligned."""
    places: dict[Buffer, int] = {}
    end = pool.reserved
    for array in arrays:
        need = max(array.alignment, pool.alignment)
        places[array.buffer] = -(-end // need) * need
        end = places[array.buffer] + array.bytes
    return places


def _size(arrays: Sequence[Constant], pool: Pool) -> int:
    """Return the bytes of a pool with these arrays; nothing if there are none."""
    starts = _starts(arrays, pool)
    return max((starts[array.buffer] + array.bytes for array in arrays), default=0)


def _by_cost(array: Constant, pools: Sequence[Pool]) -> list[int]:
    moved = Traffic(read=array.read)
    return sorted(range(len(pools)), key=lambda n: pools[n].cost(moved))


def _exhausted(
    arrays: Sequence[Constant],
    pools: Sequence[Pool],
    places: Mapping[Buffer, int],
    functions: Mapping[str, PrimFunc],
) -> MemoryPlanError:
    def readers(array: Constant) -> str:
        return ", ".join(
            layer_text(functions[user]) if user in functions else user for user in array.users
        )

    left = sorted((a for a in arrays if a.buffer not in places), key=lambda a: -a.bytes)
    texts = [f"{a.name}: {a.bytes} bytes for {readers(a)}" for a in left]
    total = sum(array.bytes for array in left)
    return MemoryPlanError(
        f"constants of {total} bytes do not fit into any pool",
        where="constant_pools.size_hint_bytes",
        legal="; ".join(_rooms(arrays, pools, places)),
        fix=f"raise the limit of a pool by {total} bytes, or declare a pool without a limit. "
        f"These constants do not fit: {listed(texts)}",
    )


def _rooms(
    arrays: Sequence[Constant], pools: Sequence[Pool], places: Mapping[Buffer, int]
) -> Iterator[str]:
    for number, pool in enumerate(pools):
        size = _size([a for a in arrays if places.get(a.buffer) == number], pool)
        yield f"'{pool.name}' has a limit of {pool.limit} bytes, of which {size} are used"
