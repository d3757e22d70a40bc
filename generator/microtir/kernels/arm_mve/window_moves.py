"""Count the moves that copy the windows of a convolution into scratch, and what they take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

from microtir.dtype import DType
from microtir.kernels.arm_mve.copying import (
    Window,
    copied,
    filled,
    gather_code,
    gathered,
    has_words,
)
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.macro_kernel import Count, cut

LONGEST_GATHER = 200  # instructions
LEAST_CALL = 5  # elements that a call moves faster than single loads

Moves = Mapping[tuple[str, int], int]
"""Counts of moves by their kind, and by the elements or pixels of each."""


def window_of(geometry: Geometry) -> Window:
    """Return the runs of a window of a whole image."""
    pitch = geometry.windows.columns.dilation * geometry.pitch
    taps, step = geometry.runs_of_row, geometry.direct_step
    return Window(geometry.windows.rows.taps, step, geometry.run_values, taps, pitch)


def row_of(geometry: Geometry) -> Window:
    """Return the runs of a kernel row, one below the other."""
    pitch = geometry.windows.columns.dilation * geometry.pitch
    return Window(geometry.runs_of_row, pitch, geometry.run_values)


def gathers(geometry: Geometry, pixels: int, dtype: DType) -> bool:
    """Return whether windows that lie in the image are copied at once."""
    columns, window = geometry.windows.columns, window_of(geometry)
    if window.taps > 1 and not has_words(window, pixels, geometry.pixel_stride, dtype):
        return False
    is_short = gather_code(geometry.runs, window.size * dtype.bytes, pixels) <= LONGEST_GATHER
    last = (columns.taps - 1) * columns.dilation + (pixels - 1) * columns.stride
    return is_short and last < columns.size


def gathers_taps(geometry: Geometry, dtype: DType) -> bool:
    """Return whether the runs of a kernel row are copied at once."""
    size = geometry.run_values * dtype.bytes
    return geometry.runs_of_row > 1 and gather_code(geometry.runs_of_row, size, 1) <= LONGEST_GATHER


@lru_cache(maxsize=16)
def moves(geometry: Geometry, counts: tuple[Count, ...], dtype: DType, *, is_whole: bool) -> Moves:
    """Count the moves of a whole output.

    Args:
        geometry: of the convolution.
        counts: of pixels that are computed together.
        dtype: of the values.
        is_whole: all rows of the input lie one after the other.
    """
    rows, columns = geometry.windows.rows, geometry.windows.columns
    firsts = [y * rows.stride - rows.before for y in range(geometry.output.height)]
    inside = [sum(0 <= y + k * rows.dilation < rows.size for k in range(rows.taps)) for y in firsts]
    counted = Counter[tuple[str, int]]()
    for some in cut(geometry.output.width, counts):
        at_once = is_whole and gathers(geometry, some.pixels, dtype)
        for number in range(some.times):
            first = min(some.first + number * some.pixels, some.last)
            lefts = [(first + n) * columns.stride - columns.before for n in range(some.pixels)]
            last = lefts[-1] + (columns.taps - 1) * columns.dilation
            is_inside = at_once and lefts[0] >= 0 and last < columns.size
            gathered_rows = inside.count(rows.taps) if is_inside else 0
            counted["gather", some.pixels] += gathered_rows
            kernel_rows = sum(inside) - gathered_rows * rows.taps
            counted["row", geometry.row_values] += some.pixels * (
                rows.taps * (len(inside) - gathered_rows) - kernel_rows
            )
            counted["kernel row", 0] += rows.taps * (len(inside) - gathered_rows)
            for kind, times in _pixel_moves(geometry, lefts, dtype):
                counted[kind] += times * kernel_rows
    return counted


def _pixel_moves(
    geometry: Geometry, lefts: list[int], dtype: DType
) -> Iterator[tuple[tuple[str, int], int]]:
    """Yield the moves of a kernel row in the image, for pixels whose windows begin at columns."""
    columns, channels = geometry.windows.columns, geometry.image.channels
    for left in lefts:
        places = [left + n * columns.dilation for n in range(columns.taps)]
        within = sum(0 <= place < columns.size for place in places)
        if within == columns.taps and gathers_taps(geometry, dtype):
            yield ("gathered row", geometry.run_values), 1
        elif within == columns.taps:
            yield ("run", geometry.run_values), geometry.runs_of_row
        else:
            yield ("tap", channels), within
            yield ("outside", channels), columns.taps - within


def printed_moves(geometry: Geometry, counted: Moves, dtype: DType) -> int:
    """Return the instructions of all moves that are calls."""
    total = 0
    for (kind, size), times in counted.items():
        if kind == "gathered row":
            total += times * gathered(row_of(geometry), 1, 0, dtype)
            continue
        if not times or kind == "kernel row" or (kind != "gather" and size < LEAST_CALL):
            continue
        if kind == "gather":
            total += times * gathered(window_of(geometry), size, geometry.pixel_stride, dtype)
        else:
            total += times * (copied if kind in ("run", "tap") else filled)(size, dtype)
    return total


def code_around(counted: Moves) -> Mapping[str, int]:
    """Return how often the code around moves runs: calls, and single elements that are moved."""
    around = Counter[str]()
    for (kind, size), times in counted.items():
        name = {"row": "fill row", "gathered row": "gather"}.get(kind, kind)
        around[name] += times
        if kind not in ("gather", "gathered row", "kernel row") and size < LEAST_CALL:
            around["element"] += times * size
    return around
