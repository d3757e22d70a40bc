"""Micro-kernels that move bytes by vectors."""

from __future__ import annotations

from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.arm_mve.linear import BYTES
from microtir.kernels.common import copies, micro_kernel, statements
from microtir.kernels.common.made_once import made_once
from microtir.measure.printed import printed
from microtir.schedule import KernelDescription
from microtir.tir import ir

_UNROLLED = 16  # vectors that are printed one by one


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


@made_once
def gather(
    rows: int, size: int, step: int, pixels: int, stride: int, dtype: DType = DType.INT8
) -> KernelDescription:
    """Compute windows of neighbouring pixels, one after another.

    Args:
        rows: of a window.
        size: elements of each row.
        step: elements between its rows.
        pixels: how many.
        stride: elements between the windows of neighbours.
        dtype: of the elements.

    Returns:
        Parameters: the first window, where the copies begin.
    """
    reach = (rows - 1) * step + (pixels - 1) * stride + size
    source = ir.Buffer("source", (reach,), dtype)
    target = ir.Buffer("target", (pixels * rows * size,), dtype)
    wide, what = ("", "bytes") if dtype is DType.INT8 else (f"_{dtype.value}", "elements")
    return micro_kernel.describe(
        f"gather{pixels}_{rows}x{size}_{step}_{stride}{wide}",
        (f"Copies {pixels} windows of {rows} rows of {size} {what}",),
        (source, target),
        (target,),
        statements.loop(
            "pixel", 0, pixels,
            lambda p: statements.loop(
                "row", 0, rows,
                lambda row: statements.loop(
                    "i", 0, size,
                    lambda i: statements.store(
                        target, ((p * rows + row) * size + i,),
                        statements.load(source, p * stride + row * step + i),
                    ),
                ),
            ),
        ),
        "kernels/mve/gather.j2",
        _gather_values(rows, size, step, pixels, stride, dtype),
        stack_bytes=8,
        needs=Feature.MVE,
    )  # fmt: skip


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


def gathered(rows: int, size: int, pixels: int, dtype: DType) -> int:
    """Return the instructions of `gather`; how far rows and pixels are apart changes none."""
    values = _gather_values(rows, size, size, pixels, size, dtype)
    return printed("kernels/mve/gather.j2", values).instructions({})


def _gather_values(
    rows: int, size: int, step: int, pixels: int, stride: int, dtype: DType
) -> dict[str, object]:
    return {
        **pieces(size * dtype.bytes),
        "first": [str(p * stride * dtype.bytes) for p in range(pixels)],
        "rows": str(rows),
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
