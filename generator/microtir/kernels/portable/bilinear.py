"""RESIZE_BILINEAR of int8 and int16, first down a column and then along a row.

Two rows of the image are weighed once for a row of the output, into scratch; there each element of
the output finds its two neighbours.  What is added up is the same integer as by four products.
Bits that no weight of an axis has are left out for int16, whose sums mostly fit 32 bits then.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import packing
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.statements import each, let, load, loop, seq, store
from microtir.operators.common.arithmetic import long, wide
from microtir.operators.common.rows import RowWindow
from microtir.operators.resize.definition import (
    BILINEAR_BITS,
    ResizeBilinear,
    bilinear_axis,
    bilinear_axis_float,
)
from microtir.plan.ir import Calls, Refusal
from microtir.tir import ir

Places = tuple[npt.NDArray[np.int64], ...]

_AT_ONCE = 8  # channels of a turn
_DOWN, _ALONG = 7, 8  # instructions for an element that is weighed by rows, and by columns
_LONG_ALONG = 15  # in 64 bits; of int16 in 32 it is one more than of int8
_MOST_BITS = 15  # of weights, with which sums of int16 have 32
_TURN, _PIXEL, _ROW = 7, 13, 30  # for a turn, and around the channels of a pixel and a row


class Bilinear(Kernel):
    """Rows that are weighed once."""

    name = "bilinear"
    operators = (ResizeBilinear,)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: floats, and uint8, which is weighed by floats."""
        return None if node.output.dtype in (DType.INT8, DType.INT16) else Refusal.TYPES

    def window(self, _node: Node) -> RowWindow | None:
        return None

    def instructions(self, node: Node, _calls: Calls) -> int:
        images, height, width, channels = node.output.shape
        turns = channels // _AT_ONCE
        more = node.output.dtype is DType.INT16
        along = _LONG_ALONG if _is_long(node) else _ALONG + more
        pixel = along * channels + (turns > 1) * _TURN * turns + _PIXEL
        down = (_DOWN + more) * node.inputs[0].shape[2] * channels
        return images * height * (down + width * pixel + _ROW)

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        _, _, width, channels = node.inputs[0].shape
        return width * channels * DType.INT32.bytes

    def packed_bytes(self, node: Node) -> int:
        return packing.bytes_of(*(table for axis in _axes(node) for table in axis))

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the loops over images and rows."""
        node = layer.node
        images, in_height, in_width, channels = node.inputs[0].shape
        height, width = node.output.shape[1:3]
        x = layer.whole(0, (images, in_height, in_width * channels)).buffer
        y = layer.output_buffer((images, height, width * channels))
        weighed = ir.Buffer("scratch", (in_width * channels,), DType.INT32)
        rows, columns = _axes(node)
        row_bits, column_bits = _bits(node)
        # Of what the second product is divided by; the first one multiplies it by one.
        half, shift, is_long = 1 << (row_bits - 1), row_bits + column_bits, _is_long(node)

        def down(image: te.Expr, row: te.Expr) -> ir.Stmt:
            first, second, weight = (load(table, row) for table in rows)

            names = (
                ("top", first), ("bottom", second), ("low", weight),
                ("high", _rest(weight, row_bits)),
            )  # fmt: skip
            return _named(names, lambda top, bottom, low, high: _by_turns(
                in_width * channels,
                lambda i: store(weighed, (i,), (wide(load(x, image, bottom, i)) * low + half)
                                + wide(load(x, image, top, i)) * high),
            ))  # fmt: skip

        def along(image: te.Expr, row: te.Expr, column: te.Expr) -> ir.Stmt:
            first, second, weight = (load(table, column) for table in columns)

            def element(
                left: te.Expr, right: te.Expr, near: te.Expr, far: te.Expr
            ) -> Callable[..., ir.Stmt]:
                def of(channel: te.Expr) -> ir.Stmt:
                    here, there = (load(weighed, at + channel) for at in (left, right))
                    # Halves go away from zero: what is negative is rounded up less.
                    number = long if is_long else wide
                    total = number(here) * number(far) + number(there) * number(near)
                    return let("total", total, lambda t: store(
                        y, (image, row, column * channels + channel),
                        te.cast(y.dtype, (t + ((t - 1) >> (t.dtype.bits - 1))) >> shift),
                    ))  # fmt: skip

                return of

            return _named(
                (
                    ("left", first * channels),
                    ("right", second * channels),
                    ("near", weight),
                    ("far", _rest(weight, column_bits)),
                ),
                lambda *at: _by_turns(channels, element(*at)),
            )

        def row(image: te.Expr, number: te.Expr) -> ir.Stmt:
            columns = each("column", width, lambda column: along(image, number, column))
            return seq(down(image, number), columns)

        body = each("image", images, lambda i: loop("row", 0, height, lambda r: row(i, r)))
        return layer.function(name, weighed, body)


def _rest(weight: te.Expr, bits: int) -> te.Expr:
    return (1 << bits) - wide(weight)


def _named(values: tuple[tuple[str, te.Expr], ...], body: Callable[..., ir.Stmt]) -> ir.Stmt:
    if not values:
        return body()
    (name, value), *others = values
    return let(name, wide(value), lambda v: _named(tuple(others), lambda *at: body(v, *at)))


def _by_turns(count: int, body: Callable[[te.Expr], ir.Stmt]) -> ir.Stmt:
    """Emit `body` for [0, count), a few in each turn of a loop."""
    turns, left = divmod(count, _AT_ONCE)

    def turn(first: te.Expr, size: int) -> ir.Stmt:
        return seq(*(body(first + n) for n in range(size)))

    rest = turn(te.as_expr(turns * _AT_ONCE), left)
    if not turns:
        return rest
    return seq(each("turn", turns, lambda n: turn(n * _AT_ONCE, _AT_ONCE)), rest)


def _is_long(node: Node) -> bool:
    """Return whether sums take 64 bits."""
    return node.output.dtype is DType.INT16 and sum(_bits(node)) > _MOST_BITS


def _bits(node: Node) -> tuple[int, int]:
    """Return the bits of weights of rows and columns."""
    rows, columns = (
        BILINEAR_BITS if node.output.dtype is DType.INT8 else max(bits_of(weights), 1)
        for _, _, weights in map(places_of, (node, node), (1, 2))
    )
    return rows, columns


def bits_of(weights: npt.NDArray[np.int64]) -> int:
    """Return how many of the highest bits some weight has."""
    lowest = int(np.bitwise_or.reduce(weights, initial=1 << BILINEAR_BITS))
    return BILINEAR_BITS + 1 - (lowest & -lowest).bit_length()


def places_of(node: Node, axis: int) -> Places:
    """Return first elements along an axis, second ones, and the weights of these.

    Those of uint8 are parts of one. Where both elements are the same one, any weight will do; what
    is no integer is odd here, so that it has all bits.
    """
    op, is_real = node.attributes(ResizeBilinear), node.output.dtype is DType.UINT8
    axis_of, one = bilinear_axis_float if is_real else bilinear_axis, 1 << BILINEAR_BITS
    places = axis_of(op, node.inputs[0].shape[axis], node.output.shape[axis])
    first, second, weights = map(np.array, (places.lower, places.upper, places.weight))
    parts = weights * one
    exact = (
        np.where(parts % 1, 1, parts % one) if is_real else np.where(first == second, 0, weights)
    )
    return first, second, exact.astype(np.int64)


def _axes(node: Node) -> tuple[tuple[ir.Buffer, ...], ...]:
    """Return tables for rows and columns: first element, second one, the weight of the second."""
    axes = []
    for name, axis, bits in zip(("row", "column"), (1, 2), _bits(node), strict=True):
        first, second, weight = places_of(node, axis)
        weight >>= BILINEAR_BITS - bits
        tables: tuple[tuple[str, npt.NDArray[np.int64]], ...] = (
            (f"first_{name}s", first), (f"second_{name}s", second), (f"{name}_weights", weight),
        )  # fmt: skip
        axes.append(tuple(packing.constant(text, narrow(values)) for text, values in tables))
    return tuple(axes)


def narrow(values: npt.NDArray[np.int64]) -> npt.NDArray[np.generic]:
    """Return indices and weights in the narrowest type that holds them."""
    return values.astype(np.min_scalar_type(int(values.max())))
