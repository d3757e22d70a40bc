"""Moves of elements by words: runs that lie so far apart, a few at a time."""

from __future__ import annotations

from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.arm_dsp import copying
from microtir.kernels.common.copies import copying_runs
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.moves import Mover, MovesByCalls
from microtir.measure.printed import number, printed
from microtir.rewrite.facts.moves import Axis
from microtir.schedule import KernelDescription

_TEMPLATE = "kernels/runs.j2"
_WORD = 4
_REGISTERS = ("r3", "ip")
_TURN = 64  # bytes that a turn of the loop moves at most, or those of one run
_LARGEST_RUN = 128  # bytes: longer ones are copied by a loop of their own
_LARGEST_STEP = 0xFFF  # bytes: what ADDW takes
_MOST_RUNS = 0xFFFF  # what MOVW takes


class MovesByWords(MovesByCalls):
    """Runs by words, and what is less than a word by itself."""

    name = "runs_dsp"
    needs = Feature.DSP

    def can_have(self, axis: Axis, run: int, dtype: DType) -> bool:
        steps = axis.source * dtype.bytes, axis.target * dtype.bytes
        is_near = min(steps) >= 0 and max(steps) <= _LARGEST_STEP and axis.extent <= _MOST_RUNS
        return run * dtype.bytes <= _LARGEST_RUN and is_near

    def mover(self, axis: Axis, run: int, dtype: DType) -> Mover:
        if run * dtype.bytes > _LARGEST_RUN:
            return Mover(copying.copy(run, dtype), copying.copied(run, dtype))
        values = _values(axis, run, dtype)
        turns = {"bne 1b": number(values, "turns")}
        return Mover(_copy_runs(axis, run, dtype), printed(_TEMPLATE, values).instructions(turns))


@made_once
def _copy_runs(axis: Axis, run: int, dtype: DType) -> KernelDescription:
    """Move runs of `run` elements along an axis; parameters: the first one, where it goes."""
    values = _values(axis, run, dtype)
    return copying_runs("copy_runs", axis, run, dtype, _TEMPLATE, values, 0, Feature.DSP)


def _values(axis: Axis, run: int, dtype: DType) -> dict[str, object]:
    """Return what the template is given: how many runs a turn moves, by which accesses.

    A turn has as many runs as its bytes and the reach of an ADDW allow.
    """
    size, source, target = (n * dtype.bytes for n in (run, axis.source, axis.target))
    reach = _LARGEST_STEP // max(source, target, 1)
    at_once = max(1, min(axis.extent, _TURN // size, reach))
    turns, left = divmod(axis.extent, at_once)
    if turns == 1:
        turns, left = 0, axis.extent
    return {
        "turns": str(turns) if turns else "",
        "accesses": _accesses(at_once, size, source, target),
        "rest": _accesses(left, size, source, target),
        "source_step": str(at_once * source),
        "target_step": str(at_once * target),
    }


def _accesses(
    runs: int, size: int, source_step: int, target_step: int
) -> list[list[dict[str, str]]]:
    """Return the accesses of so many runs, two at a time."""
    accesses = [
        {
            "load": f"ldr{width}",
            "store": f"str{width}",
            "source": str(run * source_step + place),
            "target": str(run * target_step + place),
        }
        for run in range(runs)
        for place, width in _pieces(size)
    ]
    named = [a | {"register": _REGISTERS[n % len(_REGISTERS)]} for n, a in enumerate(accesses)]
    return [named[n : n + len(_REGISTERS)] for n in range(0, len(named), len(_REGISTERS))]


def _pieces(size: int) -> list[tuple[int, str]]:
    """Return what a run is moved by: words, of which the last one may overlap, or less."""
    if size >= _WORD:
        places = [*range(0, size - _WORD + 1, _WORD)]
        return [(p, "") for p in (places if size % _WORD == 0 else [*places, size - _WORD])]
    return {1: [(0, "b")], 2: [(0, "h")], 3: [(0, "h"), (2, "b")]}[size]
