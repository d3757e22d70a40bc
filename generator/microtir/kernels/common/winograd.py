"""Convolutions of 3x3 taps by Winograd's F(2x2, 3x3), in integers and to the last bit.

A tile of 2x2 outputs is computed from 16 products for each pair of channels, where its windows
have 36: inputs and weights are transformed to 16 positions, multiplied position by position, added
up over the input channels, and transformed to outputs.  The transform of weights has halves; taken
twice in each direction it has none, and what comes out is exactly four times the sums.  Every step
is of integers, in any order, so that the result is that of the direct sum.

Inputs are taken as they are stored: values outside the image are the zero point, for which the
bias accounts as it does elsewhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import convolution_geometry, refusals
from microtir.kernels.common.requantise import BIAS, MULTIPLIER, ROUNDING, SHIFT, WORDS, Rescaling
from microtir.kernels.common.statements import load, loop, seq, store
from microtir.kernels.common.weights import INPUT_MAGNITUDE, QUAD, channel_quads
from microtir.plan.ir import Refusal
from microtir.tir import ir

TAPS = 3
SIDE = 4  # rows and columns that a tile reads
TILES = 4  # that are computed together, beside each other
POSITIONS = SIDE * SIDE
OUTPUTS = 2  # rows, and columns, of a tile
PIXELS = TILES * OUTPUTS
COLUMNS = PIXELS + TAPS - 1  # that the tiles read
PAIR = 2  # channels of a word
LEAST_CHANNELS = 8  # of inputs: with fewer, transforms take more than they save
# A position of the inputs is a sum of four of them.
_LARGEST_INPUT = 4 * INPUT_MAGNITUDE
_OF_WEIGHTS = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]], np.int64)
_OF_OUTPUTS = np.array([[1, 1, 1, 0], [0, 1, -1, -1]], np.int64)


def window_refusal(node: Node) -> Refusal | None:
    """Return what speaks against tiles of a convolution, whatever its sizes.

    They are of int8 over one image, by 3x3 taps beside each other, with an output for each pixel.
    """
    reason = refusals.int8_refusal(node) or refusals.mixed_refusal(node)
    if reason is not None:
        return reason
    geometry = convolution_geometry.Geometry.of(node)
    if geometry.image.images != 1:
        return Refusal.IMAGES
    ways = (geometry.windows.rows, geometry.windows.columns)
    is_plain = all((way.taps, way.stride, way.dilation) == (TAPS, 1, 1) for way in ways)
    return None if is_plain else Refusal.WINDOWS


def transformed(weights: npt.NDArray[np.int8]) -> npt.NDArray[np.int16]:
    """Return weights (channels, 3, 3, inputs) at their positions: (channels, 16, inputs)."""
    wide = weights.astype(np.int64)
    positions: npt.NDArray[np.int64] = np.einsum("ir,krsc,js->kijc", _OF_WEIGHTS, wide, _OF_WEIGHTS)
    return positions.reshape(len(weights), POSITIONS, -1).astype(np.int16)


def fits(positions: npt.NDArray[np.int16]) -> bool:
    """Return whether no sum leaves 32 bits, for any input and in any order of its terms.

    Args:
        positions: what `transformed` gives.
    """
    sums = _LARGEST_INPUT * np.abs(positions.astype(np.int64)).sum(axis=-1)
    reached = np.abs(_OF_OUTPUTS)
    square = sums.reshape(-1, SIDE, SIDE)
    outputs = np.einsum("ai,kij,bj->kab", reached, square, reached)
    return int(outputs.max()) < 1 << 31


def pairs_of_bytes(weights: npt.NDArray[np.int8]) -> npt.NDArray[np.int16]:
    """Return weights (channels, 3, 3, inputs) as they are, two in each element.

    Returns:
        (channels, 9, elements).  Inputs up to whole words are 0.
    """
    behind = padded(weights.shape[-1]) - weights.shape[-1]
    filled = np.pad(weights.reshape(len(weights), TAPS * TAPS, -1), ((0, 0), (0, 0), (0, behind)))
    return np.ascontiguousarray(filled).view("<i2").astype(np.int16)


def padded(channels: int) -> int:
    """Return the channels of a pixel as the transforms read it: whole words of bytes."""
    return -(-channels // QUAD) * QUAD


def arranged(positions: npt.NDArray[np.int16], per_turn: int = PAIR) -> npt.NDArray[np.int16]:
    """Return what `transformed` gives in the order of the products.

    Args:
        positions: (outputs, positions, inputs).
        per_turn: outputs of a turn.

    Returns:
        (turns, positions, input pairs, outputs of a turn, 2 inputs).  The first and third byte of
        a word are a pair, and the others are.  The outputs of the last turn overlap those before
        if turns are not whole; inputs that are not there are 0.
    """
    behind = padded(positions.shape[-1]) - positions.shape[-1]
    filled = np.pad(positions, ((0, 0), (0, 0), (0, behind)))
    words = filled.reshape(*filled.shape[:2], -1, PAIR, PAIR)  # bytes 0 and 1, 2 and 3 of a word
    lanes = words.swapaxes(-1, -2).reshape(*filled.shape[:2], -1, PAIR)
    order = np.array(channel_quads(len(positions), per_turn)).reshape(-1, per_turn)
    return np.ascontiguousarray(lanes[order].transpose(0, 2, 3, 1, 4))


def constant_words(constants: npt.NDArray[np.int32], per_turn: int = PAIR) -> npt.NDArray[np.int32]:
    """Return the constants of the outputs, turn by turn, each with the place of its first one."""
    order = np.array(channel_quads(len(constants), per_turn)).reshape(-1, per_turn)
    words = constants[order].reshape(len(order), -1)
    return np.concatenate([words, order[:, :1]], axis=1).astype(np.int32)


def constants_of(per_turn: int) -> int:
    """Return the words of the outputs of a turn: of each, and where the first one lies."""
    return per_turn * WORDS + 1


# --- what the micro-kernels mean ------------------------------------------------------------------


def input_meaning(windows: ir.Buffer, v: ir.Buffer) -> ir.Stmt:
    """Emit the transform of the inputs of four tiles.

    Columns are taken so that no more than two of them and what is stored next have to be kept.

    Args:
        windows: (4 rows, 10 columns, pairs) bytes, two in each element.
        v: (pairs, 16, 4 tiles, 2).
    """
    pairs = v.shape[0]
    assert isinstance(pairs, int)

    def channel(quad: te.Expr, tile: te.Expr, half: te.Expr, byte: int) -> ir.Stmt:
        columns = _local("columns", SIDE, SIDE)

        def value(row: int, column: int) -> te.Expr:
            word = load(windows, row, tile * OUTPUTS + column, quad * PAIR + half)
            return _byte_of(word, byte)

        def down(column: int) -> ir.Stmt:
            results = transform(*(value(row, column) for row in range(SIDE)))
            return seq(*(store(columns, (n, column), x) for n, x in enumerate(results)))

        def across(column: int) -> ir.Stmt:
            stores = []
            for row in range(SIDE):
                results = transform(*(load(columns, row, n) for n in range(SIDE)))[column]
                place = (quad * PAIR + byte, row * SIDE + column, tile, half)
                stores.append(store(v, place, te.cast(DType.INT16, results)))
            return seq(*stores)

        steps = down(0), down(2), across(0), down(1), across(1), across(2), down(3), across(3)
        return ir.Allocate(columns, seq(*steps))

    def bytes_of(quad: te.Expr, tile: te.Expr, half: te.Expr) -> ir.Stmt:
        return seq(*(channel(quad, tile, half, byte) for byte in range(PAIR)))

    return loop(
        "quad", 0, pairs // PAIR,
        lambda quad: loop("tile", 0, TILES,
                          lambda tile: loop("half", 0, PAIR, partial(bytes_of, quad, tile))),
    )  # fmt: skip


def weight_meaning(weights: ir.Buffer, u: ir.Buffer) -> ir.Stmt:
    """Emit the transform of the weights of two output channels.

    Args:
        weights: (2 outputs, 9, pairs) bytes, two in each element, as `pairs_of_bytes` gives them.
        u: (16, pairs, 2 outputs, 2), as `arranged` gives them.
    """
    pairs = u.shape[1]
    assert isinstance(pairs, int)

    def channel(number: te.Expr, quad: te.Expr, half: te.Expr, byte: int) -> ir.Stmt:
        columns = _local("columns", SIDE, TAPS)

        def value(row: int, column: int) -> te.Expr:
            return _byte_of(load(weights, number, row * TAPS + column, quad * PAIR + half), byte)

        def down(column: int) -> ir.Stmt:
            results = weight_transform(*(value(row, column) for row in range(TAPS)))
            return seq(*(store(columns, (n, column), x) for n, x in enumerate(results)))

        def across(row: int) -> ir.Stmt:
            results = weight_transform(*(load(columns, row, n) for n in range(TAPS)))
            return seq(*(
                store(
                    u, (row * SIDE + n, quad * PAIR + byte, number, half), te.cast(DType.INT16, x)
                )
                for n, x in enumerate(results)
            ))  # fmt: skip

        return ir.Allocate(columns, seq(*map(down, range(TAPS)), *map(across, range(SIDE))))

    def bytes_of(number: te.Expr, quad: te.Expr, half: te.Expr) -> ir.Stmt:
        return seq(*(channel(number, quad, half, byte) for byte in range(PAIR)))

    return loop(
        "number", 0, PAIR,
        lambda number: loop("quad", 0, pairs // PAIR,
                            lambda quad: loop("half", 0, PAIR, partial(bytes_of, number, quad))),
    )  # fmt: skip


def _byte_of(word: te.Expr, byte: int) -> te.Expr:
    """Return the first or the second byte of an element, with its sign."""
    wide = te.cast(DType.INT32, word)
    return wide >> 8 if byte else (wide & 0xFF ^ 0x80) - 0x80


def weight_transform(a: te.Expr, b: te.Expr, c: te.Expr) -> tuple[te.Expr, ...]:
    """Return the transform of three weights in a line, twice what has halves."""
    return a + a, a + b + c, a - b + c, c + c


def transform(a: te.Expr, b: te.Expr, c: te.Expr, d: te.Expr) -> tuple[te.Expr, ...]:
    """Return the transform of four values in a line."""
    return a - c, b + c, c - b, b - d


def outputs_of(a: te.Expr, b: te.Expr, c: te.Expr, d: te.Expr) -> tuple[te.Expr, te.Expr]:
    """Return the outputs of four sums in a line."""
    return a + b + c, b - c - d


class SumsOfPositions(ABC):
    """Products of some tiles with the weights of all output channels, a few a turn.

    Args:
        v: inputs (pairs, positions, tiles, 2).
        u: weights (turns, positions, pairs, outputs of a turn, 2), as `arranged` gives them.
        constants: as `constant_words` gives them.
        rescaling: of the sums.

    Attributes:
        halvings: how often what comes out is halved to be twice the sum of a window.
    """

    halvings: int

    def __init__(
        self, v: ir.Buffer, u: ir.Buffer, constants: ir.Buffer, rescaling: Rescaling
    ) -> None:
        self.v, self.u, self.constants, self.rescaling = v, u, constants, rescaling
        positions, tiles, outputs = v.shape[1], v.shape[2], u.shape[3]
        assert isinstance(positions, int) and isinstance(tiles, int) and isinstance(outputs, int)
        self.positions, self.per_turn = positions, outputs
        self.places = [(tile, number) for tile in range(tiles) for number in range(outputs)]
        self.sums = _local("sums", positions, tiles, outputs)
        self.block = _local("block", tiles, outputs)

    @abstractmethod
    def tiles(self, turn: te.Expr) -> ir.Stmt:
        """Emit the outputs of a turn, of all tiles, given the sums."""

    def whole(self) -> ir.Stmt:
        turns = te.as_expr(self.u.shape[0], DType.INT32)
        return loop("turn", 0, turns, self.turn)

    def turn(self, turn: te.Expr) -> ir.Stmt:
        whole = seq(loop("at", 0, self.positions, partial(self.position, turn)), self.tiles(turn))
        return ir.Allocate(self.sums, whole)

    def position(self, turn: te.Expr, at: te.Expr) -> ir.Stmt:
        """Emit the sums of a position over all input channels."""
        inputs, block = te.as_expr(self.v.shape[0], DType.INT32), self.block

        def products(c: te.Expr) -> ir.Stmt:
            terms = (
                (place, self.product(turn, at, c, half, *place))
                for half in range(PAIR)
                for place in self.places
            )
            return seq(*(store(block, place, load(block, *place) + x) for place, x in terms))

        whole = seq(
            *(store(block, place, 0) for place in self.places),
            loop("c", 0, inputs, products),
            *(store(self.sums, (at, *place), load(block, *place)) for place in self.places),
        )
        return ir.Allocate(block, whole)

    def product(
        self, turn: te.Expr, at: te.Expr, c: te.Expr, half: int, tile: int, number: int
    ) -> te.Expr:
        x, weight = load(self.v, c, at, tile, half), load(self.u, turn, at, c, number, half)
        return te.cast(DType.INT32, x) * te.cast(DType.INT32, weight)

    def first(self, turn: te.Expr, last: int) -> te.Expr:
        return te.minimum(turn * self.per_turn, last)

    def output(
        self, total: te.Expr, turn: te.Expr, number: int, y: ir.Buffer, column: te.Expr
    ) -> ir.Stmt:
        """Emit an output of a tile, given what comes out of its sums."""
        channels = y.shape[1]
        assert isinstance(channels, int)
        channel = self.first(turn, channels - self.per_turn) + number

        def word(place: int) -> te.Expr:
            return load(self.constants, turn, number * WORDS + place)

        doubled = (total >> self.halvings if self.halvings else total) + word(BIAS)
        value = self.rescaling.rescale(doubled, word(MULTIPLIER), word(ROUNDING), word(SHIFT))
        return store(y, (column, channel), te.cast(DType.INT8, value))


class ProductMeaning(SumsOfPositions):
    """Products of four tiles, which end in two rows.

    Args:
        v, u, constants, rescaling: as `SumsOfPositions` has them.
        rows: of the outputs, (8, channels) each.
        count: of these rows: of one, the other is not written.
        channel: that the only turn begins at, if there are others elsewhere.
    """

    halvings = 1

    def __init__(
        self,
        v: ir.Buffer,
        u: ir.Buffer,
        constants: ir.Buffer,
        rows: tuple[ir.Buffer, ir.Buffer],
        count: te.Expr,
        rescaling: Rescaling,
        channel: te.Expr | None = None,
    ) -> None:
        super().__init__(v, u, constants, rescaling)
        self.rows, self.count, self.channel = rows, count, channel

    def first(self, turn: te.Expr, last: int) -> te.Expr:
        return super().first(turn, last) if self.channel is None else self.channel

    def tiles(self, pair: te.Expr) -> ir.Stmt:
        """Emit two channels of the outputs of all tiles."""
        return loop("tile", 0, TILES, lambda tile: seq(*(
            self.outputs(pair, tile, number) for number in range(PAIR)
        )))  # fmt: skip

    def outputs(self, pair: te.Expr, tile: te.Expr, number: int) -> ir.Stmt:
        lines = _local("lines", SIDE, OUTPUTS)

        def line(row: int) -> ir.Stmt:
            results = outputs_of(
                *(load(self.sums, row * SIDE + n, tile, number) for n in range(SIDE))
            )
            return seq(*(store(lines, (row, n), x) for n, x in enumerate(results)))

        def output(row: int) -> ir.Stmt:
            outputs = []
            for column in range(OUTPUTS):
                total = outputs_of(*(load(lines, n, column) for n in range(SIDE)))[row]
                outputs.append(
                    self.output(total, pair, number, self.rows[row], tile * OUTPUTS + column)
                )
            return seq(*outputs)

        whole = seq(
            *(line(row) for row in range(SIDE)), ir.If((self.count > 1).node, output(1)), output(0)
        )
        return ir.Allocate(lines, whole)


def _local(name: str, *shape: int) -> ir.Buffer:
    return ir.Buffer(name, shape, DType.INT32, ir.Scope.LOCAL)
