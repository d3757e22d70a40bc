"""Convolutions of 3x3 taps by Winograd's F(2, 3) along rows, in integers and to the last bit.

A tile is two outputs beside each other.  Each of the three rows of four pixels behind them is
transformed by itself; products are added up over rows and input channels.  A tile has 12 products
for each pair of channels, where its windows have 18.  No output row shares anything with the next,
so that rows may be computed one by one.  What comes out is exactly twice the sums.

The positions stand in the order in which the kernels add them up: outputs are then the first sums
plus and minus the second ones, with the third ones added to the former, and the last ones to the
latter.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.kernels.common.requantise import Rescaling
from microtir.kernels.common.statements import load, loop, seq, store
from microtir.kernels.common.weights import INPUT_MAGNITUDE
from microtir.kernels.common.winograd import OUTPUTS, PAIR, SIDE, SumsOfPositions, padded
from microtir.tir import ir

POSITIONS = SIDE
# A position of the inputs is a sum of two of them.
_LARGEST_INPUT = 2 * INPUT_MAGNITUDE
_OF_WEIGHTS = np.array([[1, 1, 1], [1, -1, 1], [2, 0, 0], [0, 0, 2]], np.int64)
_OF_OUTPUTS = np.array([[1, 1, 1, 0], [1, -1, 0, 1]], np.int64)


def transformed(weights: npt.NDArray[np.int8]) -> npt.NDArray[np.int16]:
    """Return weights (channels, 3, 3, inputs) at their positions: (channels, 4, rows of inputs).

    Inputs that are not there are 0: each row has whole words of bytes.
    """
    wide = weights.astype(np.int64)
    positions: npt.NDArray[np.int64] = np.einsum("js,krsc->kjrc", _OF_WEIGHTS, wide)
    inputs = wide.shape[-1]
    filled = np.pad(positions, ((0, 0), (0, 0), (0, 0), (0, padded(inputs) - inputs)))
    return filled.reshape(len(weights), POSITIONS, -1).astype(np.int16)


def fits(positions: npt.NDArray[np.int16]) -> bool:
    """Return whether no sum leaves 32 bits, for any input and in any order of its terms.

    Args:
        positions: what `transformed` gives.
    """
    sums = _LARGEST_INPUT * np.abs(positions.astype(np.int64)).sum(axis=-1)
    return int((sums @ np.abs(_OF_OUTPUTS).T).max()) < 1 << 31


# --- what the micro-kernels mean ------------------------------------------------------------------


def row_meaning(row: ir.Buffer, v: ir.Buffer) -> ir.Stmt:
    """Emit the transform of a row behind some tiles.

    Args:
        row: (columns, pairs) bytes, two in each element.
        v: (pairs, 4, tiles, 2).
    """
    pairs, tiles = v.shape[0], v.shape[2]
    assert isinstance(pairs, int) and isinstance(tiles, int)

    def channel(quad: te.Expr, tile: te.Expr, half: te.Expr, byte: int) -> ir.Stmt:
        def value(column: int) -> te.Expr:
            wide = te.cast(DType.INT32, load(row, tile * OUTPUTS + column, quad * PAIR + half))
            return wide >> 8 if byte else (wide & 0xFF ^ 0x80) - 0x80

        a, b, c, d = (value(column) for column in range(SIDE))
        values = b + c, c - b, a - c, d - b
        return seq(*(
            store(v, (quad * PAIR + byte, at, tile, half), te.cast(DType.INT16, x))
            for at, x in enumerate(values)
        ))  # fmt: skip

    def bytes_of(quad: te.Expr, tile: te.Expr, half: te.Expr) -> ir.Stmt:
        return seq(*(channel(quad, tile, half, byte) for byte in range(PAIR)))

    return loop(
        "quad", 0, pairs // PAIR,
        lambda quad: loop("tile", 0, tiles,
                          lambda tile: loop("half", 0, PAIR, partial(bytes_of, quad, tile))),
    )  # fmt: skip


class RowMeaning(SumsOfPositions):
    """Products of some tiles of a row, with the inputs of three rows.

    Args:
        v, u, constants, rescaling: as `SumsOfPositions` has them.
        y: outputs (pixels, channels).
    """

    halvings = 0

    def __init__(
        self, v: ir.Buffer, u: ir.Buffer, constants: ir.Buffer, y: ir.Buffer, rescaling: Rescaling
    ) -> None:
        super().__init__(v, u, constants, rescaling)
        self.y = y

    def tiles(self, turn: te.Expr) -> ir.Stmt:
        return seq(*(
            self.pixel(turn, tile, number, column)
            for tile, number in self.places
            for column in range(OUTPUTS)
        ))  # fmt: skip

    def pixel(self, turn: te.Expr, tile: int, number: int, column: int) -> ir.Stmt:
        first, second, third, last = (load(self.sums, at, tile, number) for at in range(POSITIONS))
        total = first - second + last if column else first + second + third
        place = te.as_expr(tile * OUTPUTS + column, DType.INT32)
        return self.output(total, turn, number, self.y, place)
