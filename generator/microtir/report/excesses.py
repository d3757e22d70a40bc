"""Finds the layers that break a limit, and by how many bytes."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from microtir.report import data


def with_excesses(
    layers: Sequence[data.ReportedLayer],
    steps: Sequence[data.MainCall],
    limited: Sequence[tuple[data.ReportedLimit, Sequence[data.ReportedPool]]],
    stack: data.ReportedLimit | None,
    deepest: Container[str],
) -> tuple[data.ReportedLayer, ...]:
    """Return the layers, each with what it takes beyond limits.

    Args:
        layers: of the report.
        steps: the calls of the layers.
        limited: limits of RAM, each with the pools that it is about.
        stack: the limit of the stack, if there is one.
        deepest: names in TIR of the functions of the deepest chain of calls.
    """
    excesses: dict[str, list[data.Excess]] = {}
    for limit, pools in limited:
        if limit.free < 0:
            for number, size in _by_layer(steps, pools, limit.allowed).items():
                excesses.setdefault(number, []).append(
                    data.Excess(limit.option, size - limit.allowed)
                )
    if stack is not None and stack.free < 0:
        for step in steps:
            if step.function in deepest:
                excesses.setdefault(_number(step), []).append(
                    data.Excess(stack.option, -stack.free)
                )
    return tuple(replace(layer, exceeds=tuple(excesses.get(layer.number, ()))) for layer in layers)


def _by_layer(
    steps: Sequence[data.MainCall], pools: Sequence[data.ReportedPool], allowed: int
) -> dict[str, int]:
    """Return bytes in use at each layer that needs more than is allowed.

    If none does, gaps between buffers are what exceeds the limit, and the layers count whose
    buffers lie beyond it.
    """
    used = [sum(_in_use(pool, step.number) for pool in pools) for step in steps]
    if max(used, default=0) <= allowed:
        used = [sum(_reach(pool, step.number) for pool in pools) for step in steps]
    sizes: dict[str, int] = {}
    for step, size in zip(steps, used, strict=True):
        if size > allowed:
            sizes[_number(step)] = max(size, sizes.get(_number(step), 0))
    return sizes


def _number(step: data.MainCall) -> str:
    return step.label.removesuffix(data.FINISH)


def _live_bytes(pool: data.ReportedPool, step: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a pool that buffers keep at a step; two may take turns in one place."""
    for buffer in pool.buffers:
        yield from ((s.low, s.high) for s in buffer.spans if s.first <= step <= s.last)


def _in_use(pool: data.ReportedPool, step: int) -> int:
    total = end = 0
    for low, high in sorted(_live_bytes(pool, step)):
        total += max(high - max(low, end), 0)
        end = max(end, high)
    return total


def _reach(pool: data.ReportedPool, step: int) -> int:
    return max((high for _, high in _live_bytes(pool, step)), default=0)
