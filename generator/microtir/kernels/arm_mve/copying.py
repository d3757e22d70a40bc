"""Micro-kernels that move bytes by vectors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.arm_mve.linear import BYTES
from microtir.kernels.common import copies, micro_kernel, statements
from microtir.kernels.common.made_once import made_once
from microtir.measure.printed import printed
from microtir.schedule import KernelDescription
from microtir.tir import ir

_UNROLLED = 16  # vectors that are printed one by one
_WORDS, _REACH = 8, 4095  # bytes of a run that is moved by words, and how far offsets reach
_WIDTHS: Mapping[int, str] = MappingProxyType({4: "", 2: "h", 1: "b"})


@made_once
def copy(size: int, dtype: DType = DType.INT8) -> KernelDescription:
    """Move `size` elements; parameters: from, to."""
    values = pieces(size * dtype.bytes)
    return copies.copying("move", size, "kernels/mve/copy.j2", values, 8, Feature.MVE, dtype)


@made_once
def fill(size: int, value: int, dtype: DType = DType.INT8) -> KernelDescription:
    """Set `size` elements to `value`, which is a byte, or 0 of any type; parameter: to."""
    assert value == 0 or dtype is DType.INT8
    values = {"value": str(value), "size": str(size * dtype.bytes)}
    return copies.filling(size, value, dtype, "kernels/mve/fill.j2", values, 8, Feature.MVE)


class Window(NamedTuple):
    """The runs of a window: `rows` of `taps` runs of `size` elements.

    Attributes:
        step: elements between rows.
        pitch: elements between the runs of a row.
    """

    rows: int
    step: int
    size: int
    taps: int = 1
    pitch: int = 0

    @property
    def elements(self) -> int:
        return self.rows * self.taps * self.size


@made_once
def gather(
    window: Window, pixels: int, stride: int, dtype: DType = DType.INT8
) -> KernelDescription:
    """Compute windows of neighbouring pixels, one after another.

    Args:
        window: of a pixel; its rows have one run, unless `has_words` says that words are moved.
        pixels: how many.
        stride: elements between the windows of neighbours.
        dtype: of the elements.

    Returns:
        Parameters: the first window, where the copies begin.
    """
    rows, step, size, taps, pitch = window
    reach = (rows - 1) * step + (taps - 1) * pitch + (pixels - 1) * stride + size
    source = ir.Buffer("source", (reach,), dtype)
    target = ir.Buffer("target", (pixels * window.elements,), dtype)
    wide, what = ("", "bytes") if dtype is DType.INT8 else (f"_{dtype.value}", "elements")
    runs, steps = (f"{taps}x{size}", f"{step}_{pitch}") if taps > 1 else (f"{size}", f"{step}")
    about = f"{pixels} windows of {rows} rows of " + f"{taps} runs of " * (taps > 1)

    def run(pixel: te.Expr, row: te.Expr, tap: te.Expr) -> ir.Stmt:
        first, place = pixel * stride + row * step, (pixel * rows + row) * size
        if taps > 1:
            first, place = first + tap * pitch, ((pixel * rows + row) * taps + tap) * size
        return statements.loop(
            "i", 0, size,
            lambda i: statements.store(target, (place + i,), statements.load(source, first + i)),
        )  # fmt: skip

    def row_of(pixel: te.Expr, row: te.Expr) -> ir.Stmt:
        if taps == 1:
            return run(pixel, row, te.as_expr(0, DType.INT32))
        return statements.loop("tap", 0, taps, partial(run, pixel, row))

    return micro_kernel.describe(
        f"gather{pixels}_{rows}x{runs}_{steps}_{stride}{wide}",
        (f"Copies {about}{size} {what}",),
        (source, target),
        (target,),
        statements.loop(
            "pixel", 0, pixels, lambda p: statements.loop("row", 0, rows, partial(row_of, p))
        ),
        "kernels/mve/gather.j2",
        _gather_values(window, pixels, stride, dtype),
        stack_bytes=8,
        needs=Feature.MVE,
    )


def copied(size: int, dtype: DType) -> int:
    """Return the instructions of `copy`."""
    values = pieces(size * dtype.bytes)
    vectors = -(-size * dtype.bytes // BYTES)
    return printed("kernels/mve/copy.j2", values).instructions({"letp lr, 1b": vectors})


def filled(size: int, dtype: DType) -> int:
    """Return the instructions of `fill`."""
    values = {"value": "0", "size": str(size * dtype.bytes)}
    vectors = -(-size * dtype.bytes // BYTES)
    return printed("kernels/mve/fill.j2", values).instructions({"letp lr, 1b": vectors})


def gathered(window: Window, pixels: int, stride: int, dtype: DType) -> int:
    """Return the instructions of `gather`."""
    values = _gather_values(window, pixels, stride, dtype)
    return printed("kernels/mve/gather.j2", values).instructions({})


def has_words(window: Window, pixels: int, stride: int, dtype: DType) -> bool:
    """Return whether runs are so short that they are moved by words, which loads and stores reach.

    A word that lies in several windows is loaded once.
    """
    last = (window.taps - 1) * window.pitch + (pixels - 1) * stride + window.size
    farthest = max(last, pixels * window.elements, window.step)
    return window.size * dtype.bytes <= _WORDS and farthest * dtype.bytes <= _REACH


def _word_moves(
    window: Window, pixels: int, stride: int, dtype: DType
) -> list[list[dict[str, object]]]:
    """Return the loads of each row, and where what is loaded is stored."""
    rows, _, size, taps, pitch = window
    length = size * dtype.bytes
    width = next(n for n in _WIDTHS if n <= length)
    moves: list[list[dict[str, object]]] = []
    for row in range(rows):
        targets: dict[int, list[str]] = {}
        for pixel in range(pixels):
            for tap in range(taps):
                first = (pixel * stride + tap * pitch) * dtype.bytes
                place = ((pixel * rows + row) * taps + tap) * length
                for piece in {0, length - width}:
                    targets.setdefault(first + piece, []).append(str(place + piece))
        moves.append([
            {"width": _WIDTHS[width], "offset": str(offset), "targets": places}
            for offset, places in sorted(targets.items())
        ])  # fmt: skip
    return moves


def _gather_values(window: Window, pixels: int, stride: int, dtype: DType) -> dict[str, object]:
    rows, step, size, *_ = window
    moved = has_words(window, pixels, stride, dtype)
    return {
        **pieces(size * dtype.bytes),
        "moves": _word_moves(window, pixels, stride, dtype) if moved else [],
        "first": [str(p * stride * dtype.bytes) for p in range(pixels)],
        "rows": str(rows),
        "row_bytes": str(step * dtype.bytes),
        "step": str(step * dtype.bytes - size * dtype.bytes // BYTES * BYTES),
    }


def gather_code(rows: int, size: int, pixels: int) -> int:
    """Return the instructions of `gather` for rows of so many bytes, all of which are printed."""
    return pixels * rows * (2 * -(-size // BYTES) + 1)


def pieces(size: int) -> dict[str, object]:
    """Return whole vectors, and what is left: it overlaps the last of them, or is masked."""
    whole, rest = divmod(size, BYTES)
    return {
        "size": str(size),
        "loops": whole > _UNROLLED,
        "whole": str(whole) if whole else "",
        "rest": str(rest) if rest else "",
        "back": str(BYTES - rest),
    }
