"""Moves of elements by vectors: runs that lie so far apart, or elements that are gathered."""

from __future__ import annotations

from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.arm_mve import copying
from microtir.kernels.arm_mve.linear import BYTES
from microtir.kernels.common.copies import copying_runs
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.moves import Mover, MovesByCalls
from microtir.measure.printed import printed
from microtir.rewrite.facts.moves import Axis

_RUNS, _ELEMENTS = "kernels/mve/runs.j2", "kernels/mve/elements.j2"
_LARGEST_RUN = 16 * BYTES  # longer ones are copied by a loop of their own
_LARGEST_STEP = 0xFFFF  # bytes: what MOVW loads
_IMMEDIATE = 0xFFF  # bytes: what ADDW adds
_WIDTHS = {1: ("b", 16), 2: ("h", 16), 4: ("w", 32)}  # of elements that are gathered, and of lanes


class MovesByVectors(MovesByCalls):
    """Runs by vectors, of which the last one overlaps or is masked."""

    name = "runs_mve"
    needs = Feature.MVE

    def can_have(self, axis: Axis, run: int, dtype: DType) -> bool:
        steps = axis.source * dtype.bytes, axis.target * dtype.bytes
        is_near = min(steps) >= 0 and max(*steps, axis.extent) <= _LARGEST_STEP
        if run == 1 and not _gathers(axis, run, dtype) and dtype.bytes in _WIDTHS:
            return False
        return run * dtype.bytes <= _LARGEST_RUN and is_near

    def of_constants(self, elements: int, size: int) -> int:
        """Return the instructions that set a line: vectors, where they are as long as its turns."""
        turns, left = divmod(elements, 4)
        words = turns * size
        by_vectors = words % 4 == 0
        stores = words // 4 if by_vectors else words
        loops = stores > 4 if by_vectors else turns > 2 and words != 6
        return stores + -(-left // 2) + (stores + 6 if loops else 3)

    def mover(self, axis: Axis, run: int, dtype: DType) -> Mover:
        if run * dtype.bytes > _LARGEST_RUN:
            return Mover(copying.copy(run, dtype), copying.copied(run, dtype))
        if _gathers(axis, run, dtype):
            return gathered_elements(axis, dtype)
        return _moved_runs(axis, run, dtype)


def _gathers(axis: Axis, run: int, dtype: DType) -> bool:
    """Return whether what is moved along an axis are elements that follow each other behind."""
    lanes = 8 * BYTES // _WIDTHS[dtype.bytes][1] if dtype.bytes in _WIDTHS else 0
    is_near = lanes * axis.source * dtype.bytes <= _LARGEST_STEP
    return run == 1 and axis.target == 1 and bool(lanes) and is_near


@made_once
def gathered_elements(axis: Axis, dtype: DType) -> Mover:
    """Return what moves elements along an axis to where they follow each other."""
    values, turns = _element_values(axis, dtype), axis.extent * _WIDTHS[dtype.bytes][1]
    count = printed(_ELEMENTS, values).instructions({"letp lr, 1b": -(-turns // (8 * BYTES))})
    kernel = copying_runs("gather_elements", axis, 1, dtype, _ELEMENTS, values, 8, Feature.MVE)
    return Mover(kernel, count)


@made_once
def _moved_runs(axis: Axis, run: int, dtype: DType) -> Mover:
    """Return what moves runs of `run` elements along an axis."""
    values = _run_values(axis, run, dtype)
    count = printed(_RUNS, values).instructions({"le lr, 1b": axis.extent})
    kernel = copying_runs("move_runs", axis, run, dtype, _RUNS, values, 8, Feature.MVE)
    return Mover(kernel, count)


def _run_values(axis: Axis, run: int, dtype: DType) -> dict[str, object]:
    size = run * dtype.bytes
    moved = size // BYTES * BYTES
    steps = ("r0", "r3", axis.source), ("r1", "r4", axis.target)
    return {
        **copying.pieces(size),
        "count": str(axis.extent),
        "steps": [
            {
                "moves": pointer,
                "bytes": str(step * dtype.bytes - moved),
                "register": "" if abs(step * dtype.bytes - moved) <= _IMMEDIATE else register,
            }
            for pointer, register, step in steps
        ],
    }


def _element_values(axis: Axis, dtype: DType) -> dict[str, str]:
    width, bits = _WIDTHS[dtype.bytes]
    lanes = 8 * BYTES // bits
    step = axis.source * dtype.bytes
    return {
        "width": width,
        "bits": str(bits),
        "step": str(step),
        "turn_step": str(lanes * step),
        "count": str(axis.extent),
        "written": str(lanes * dtype.bytes),
    }
