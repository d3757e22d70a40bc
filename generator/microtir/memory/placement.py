"""Offsets for buffers with lifetimes: first fit in several orders, or a search over all orders."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from microtir.memory.lifetimes import Lifetime, lower_bound
from microtir.tir.ir import Buffer

# First fit depends on the order alone.  Large-first is the usual winner; the others repair the
# cases in which a long-lived small buffer ends up between two large ones.
_ORDERS: tuple[Callable[[Lifetime], tuple[int, ...]], ...] = (
    lambda life: (-life.size, life.first),
    lambda life: (-(life.last - life.first), -life.size, life.first),
    lambda life: (-life.size * (life.last - life.first + 1), life.first),
    lambda life: (life.first, -life.size),
    lambda life: (-life.last, -life.size),
)


SEARCH_NODES = 50_000


def first_fit(lives: tuple[Lifetime, ...], alignment: int) -> Mapping[Buffer, int]:
    """Return an aligned offset in bytes for each buffer such that no two living ones overlap.

    Every offset is a multiple of `alignment` and of what its buffer needs, both powers of two.
    Deterministic: ties keep program order. Stops early at the lower bound.
    """
    bound = lower_bound(lives)
    best: dict[Buffer, int] = {}
    best_size = -1
    for order in _ORDERS:
        offsets = _fit(sorted(lives, key=order), alignment)
        size = workspace_size(lives, offsets)
        if best_size < 0 or size < best_size:
            best, best_size = offsets, size
        if best_size == bound:
            break
    return best


def exact_fit(lives: tuple[Lifetime, ...], alignment: int) -> Mapping[Buffer, int]:
    """Return the smallest placement that a search over first-fit orders finds.

    Any placement, pushed down, is the first fit of its buffers in order of offset, so the search
    is complete; it ends at a lower bound or after SEARCH_NODES partial placements, and then
    the gap of the plan says what may be left.
    """
    best = dict(first_fit(lives, alignment))
    best_size = workspace_size(lives, best)
    bound = _aligned_bound(lives, alignment)
    nodes = 0
    stack: list[tuple[Lifetime, ...]] = [()]
    while stack and best_size > bound and nodes < SEARCH_NODES:
        prefix = stack.pop()
        nodes += 1
        offsets = _fit(list(prefix), alignment)
        size = workspace_size(prefix, offsets)
        if size >= best_size:
            continue
        if len(prefix) == len(lives):
            best, best_size = offsets, size
            continue
        rest = sorted((life for life in lives if life not in prefix), key=_ORDERS[0], reverse=True)
        stack.extend((*prefix, life) for life in rest)
    return best


def workspace_size(lives: tuple[Lifetime, ...], offsets: Mapping[Buffer, int]) -> int:
    """Bytes from 0 to the end of the highest buffer."""
    return max((offsets[life.buffer] + life.size for life in lives), default=0)


def _aligned_bound(lives: tuple[Lifetime, ...], alignment: int) -> int:
    """Bytes that no placement at multiples of `alignment` can go below.

    Of the buffers alive at one step, each but the highest is followed by another, at a multiple.
    """
    bound = 0
    for step in range(max((life.last for life in lives), default=-1) + 1):
        sizes = [life.size for life in lives if life.first <= step <= life.last]
        rounded = [_round_up(size, alignment) for size in sizes]
        padding = max((r - size for r, size in zip(rounded, sizes, strict=True)), default=0)
        bound = max(bound, sum(rounded) - padding)
    return bound


def _fit(ordered: list[Lifetime], alignment: int) -> dict[Buffer, int]:
    offsets: dict[Buffer, int] = {}
    placed: list[Lifetime] = []
    for life in ordered:
        taken = sorted((offsets[p.buffer], p.size) for p in placed if p.overlaps(life))
        offset = 0
        for start, size in taken:
            if offset + life.size <= start:
                break
            offset = max(offset, _round_up(start + size, max(alignment, life.alignment)))
        offsets[life.buffer] = offset
        placed.append(life)
    return offsets


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
