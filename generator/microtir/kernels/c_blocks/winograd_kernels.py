"""The micro-kernels of Winograd's convolutions in plain C: a value in each word or half of one.

Sums of a position lie in registers, of four tiles and as many output channels as there are
registers for; all positions of these are then in memory, from where they become outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from microtir import te
from microtir.dtype import DType
from microtir.kernels.c_blocks.finish import Requantise, upper_word
from microtir.kernels.c_blocks.kernel import portable
from microtir.kernels.common import requantise, runs, unrolling, winograd
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import all_of
from microtir.kernels.common.statements import let, load, loop, seq, store, when
from microtir.kernels.common.winograd import COLUMNS, OUTPUTS, PIXELS, POSITIONS, SIDE, TILES
from microtir.schedule import KernelDescription
from microtir.tir import function, ir

PLACES = SIDE * COLUMNS  # of the windows of a channel
TRANSFORMS = POSITIONS * TILES  # of a channel
_MOVED = 8  # channels of a pixel that are moved without a loop between them
_NAMES = ("bias", "factor", "rounding", "shift")


@dataclass(frozen=True, slots=True)
class Block:
    """The sums that registers hold: those of four tiles by `channels` output channels.

    A sum takes `turn` input channels without a loop between them.  Transforms are of the type
    `lane`.  Operands may be read `in_turn`, where compilers would load all of a turn first.
    """

    channels: int
    turn: int
    lane: DType = DType.INT16
    in_turn: bool = False

    @property
    def name(self) -> str:
        return f"x{self.channels}_{self.lane.value}_{self.turn}{'_in_turn' * self.in_turn}"


def _described(
    name: str,
    about: str,
    params: tuple[ir.Buffer, ...],
    written: tuple[ir.Buffer, ...],
    body: ir.Stmt,
    scalars: tuple[ir.Var, ...] = (),
) -> KernelDescription:
    """Describe a micro-kernel of statements that is printed as C, a function of its own."""
    kernel = function.MicroKernel((about,), noinline=True)
    meaning = ir.PrimFunc(name, (*params, *scalars), body, kernel=kernel)
    reads = tuple(all_of(p) for p in params if p not in written)
    return KernelDescription(meaning, ir.KernelContract(reads, tuple(map(all_of, written))))


@made_once
def move(channels: int, lane: DType) -> KernelDescription:
    """Move the channels of a pixel to its place in the windows of each; parameters: from, to."""
    source = te.placeholder((channels,), DType.INT8, "source")
    target = te.compute(
        (channels,),
        lambda i: te.cast(lane, source[i]),
        "target",
        store=lambda i: (i * PLACES,),
        buffer_shape=((channels - 1) * PLACES + 1,),
    )
    steps = te.create_schedule(target)
    unrolling.unroll_by(steps, steps.loop(target, "i"), channels, _MOVED)
    name = f"winograd_move_{channels}_{lane.value}"
    return portable(name, f"Spreads the {channels} channels of a pixel", steps, (source, target))


@made_once
def inputs(channels: int, lane: DType) -> KernelDescription:
    """Transform the inputs of four tiles, channel by channel.

    Returns:
        Parameters: windows (channels, 4 rows, 10 columns); transforms (channels, 16, 4 tiles).
    """
    windows = ir.Buffer("windows", (channels, SIDE, COLUMNS), lane)
    v = ir.Buffer("v", (channels, POSITIONS, TILES), lane)

    def channel(c: te.Expr) -> ir.Stmt:
        columns = ir.Buffer("columns", (SIDE, COLUMNS), DType.INT32, ir.Scope.LOCAL)

        def down(column: int) -> ir.Stmt:
            values = (te.cast(DType.INT32, load(windows, c, row, column)) for row in range(SIDE))
            results = winograd.transform(*values)
            return seq(*(store(columns, (row, column), x) for row, x in enumerate(results)))

        def across(tile: int) -> ir.Stmt:
            first = tile * OUTPUTS
            stores = []
            for row in range(SIDE):
                results = winograd.transform(*(load(columns, row, first + n) for n in range(SIDE)))
                for column, x in enumerate(results):
                    place = c, row * SIDE + column, tile
                    stores.append(store(v, place, te.cast(lane, x)))
            return seq(*stores)

        first = [down(column) for column in range(COLUMNS - TILES * OUTPUTS)]
        steps = [
            step
            for tile in range(TILES)
            for step in (*(down(tile * OUTPUTS + n) for n in (2, 3)), across(tile))
        ]
        return ir.Allocate(columns, seq(*first, *steps))

    return _described(
        f"winograd_inputs_{channels}_{lane.value}",
        f"Winograd: inputs of four tiles, {channels} channels",
        (windows, v),
        (v,),
        loop("c", 0, channels, channel),
    )


@made_once
def products(inputs: int, channels: int, block: Block, finish: Requantise) -> KernelDescription:
    """Multiply the transforms of four tiles with weights, and make outputs of the sums.

    Args:
        inputs: channels of the inputs.
        channels: of a pixel of the output.
        block: of sums; a last one begins earlier where channels are left.
        finish: of the sums.

    Returns:
        Parameters: transforms as `inputs` writes them; weights (turns, 16, inputs, channels of a
        turn); constants of these channels (turns * channels, 4); two output rows (8 pixels,
        channels); how many of them are written: if the second is not, it is given as the first.
    """
    turns = len(runs.turns_of(channels, block.channels))
    v = ir.Buffer("v", (inputs, POSITIONS, TILES), block.lane)
    u = ir.Buffer("u", (turns, POSITIONS, inputs, block.channels), DType.INT16)
    table = ir.Buffer("table", (turns * block.channels, requantise.WORDS), DType.INT32)
    rows = tuple(ir.Buffer(f"y{n}", (PIXELS, channels), DType.INT8) for n in range(OUTPUTS))
    count = ir.Var("rows", low=1, high=OUTPUTS)
    sums = ir.Buffer("sums", (POSITIONS, block.channels * TILES), DType.INT32, ir.Scope.LOCAL)
    outputs = _Outputs(sums, table, rows, te.as_expr(count, DType.INT32), block, finish)

    def turn(number: te.Expr) -> ir.Stmt:
        positions = loop("at", 0, POSITIONS, lambda at: _position(v, u, sums, block, number, at))
        return ir.Allocate(sums, seq(positions, outputs.turn(number)))

    return _described(
        f"winograd_{inputs}to{channels}_{block.name}_{finish.name}",
        f"Winograd: products of four tiles, {inputs} to {channels} channels, and their outputs",
        (v, u, table, *rows),
        rows,
        loop("turn", 0, turns, turn),
        (count,),
    )


def _position(
    v: ir.Buffer, u: ir.Buffer, sums: ir.Buffer, block: Block, turn: te.Expr, at: te.Expr
) -> ir.Stmt:
    """Emit the sums of a position over all input channels."""
    inputs = u.shape[2]
    assert isinstance(inputs, int)
    held = ir.Buffer("held", (block.channels * TILES,), DType.INT32, ir.Scope.LOCAL)

    def operand(value: te.Expr, then: Callable[[te.Expr], ir.Stmt], name: str) -> ir.Stmt:
        wide = te.cast(DType.INT32, value)
        return let(name, te.compiler_barrier(wide) if block.in_turn else wide, then)

    def step(c: te.Expr, weights: tuple[te.Expr, ...] = ()) -> ir.Stmt:
        if len(weights) < block.channels:
            weight = load(u, turn, at, c, len(weights))
            return operand(weight, lambda w: step(c, (*weights, w)), "w")
        return seq(*(
            operand(load(v, c, at, tile), partial(add, weights, tile), "x")
            for tile in range(TILES)
        ))  # fmt: skip

    def add(weights: tuple[te.Expr, ...], tile: int, x: te.Expr) -> ir.Stmt:
        places = (number * TILES + tile for number in range(block.channels))
        return seq(*(
            store(held, (place,), load(held, place) + x * w)
            for place, w in zip(places, weights, strict=True)
        ))  # fmt: skip

    def some(first: te.ExprLike, count: int) -> ir.Stmt:
        return seq(*(step(te.as_expr(first, DType.INT32) + n) for n in range(count)))

    whole, left = divmod(inputs, block.turn)
    whole, left = (whole, left) if whole > 1 else (0, inputs)
    places = range(block.channels * TILES)
    body = seq(
        *(store(held, (place,), 0) for place in places),
        *((loop("c", 0, whole, lambda n: some(n * block.turn, block.turn)),) if whole else ()),
        some(whole * block.turn, left),
        *(store(sums, (at, place), load(held, place)) for place in places),
    )
    return ir.Allocate(held, body)


class _Outputs:
    """The outputs made of the sums of four tiles, channel by channel.

    Args:
        sums: of all positions.
        table: constants of channels.
        rows: of the outputs, of which the second may be the first.
        count: how many of these are written.
        block: of sums.
        finish: of these.
    """

    def __init__(
        self,
        sums: ir.Buffer,
        table: ir.Buffer,
        rows: tuple[ir.Buffer, ...],
        count: te.Expr,
        block: Block,
        finish: Requantise,
    ) -> None:
        self.sums, self.table, self.rows, self.count = sums, table, rows, count
        self.per_turn, self.finish = block.channels, finish

    def turn(self, turn: te.Expr) -> ir.Stmt:
        channels = self.rows[0].shape[1]
        assert isinstance(channels, int)
        first = turn * self.per_turn
        if channels % self.per_turn:
            first = te.minimum(first, channels - self.per_turn)

        def channel(number: te.Expr) -> ir.Stmt:
            return self._words(
                turn * self.per_turn + number,
                lambda words: loop(
                    "tile", 0, TILES, partial(self._tile, words, number, first + number)
                ),
            )

        return loop("number", 0, self.per_turn, channel)

    def _words(
        self,
        row: te.Expr,
        body: Callable[[tuple[te.Expr, ...]], ir.Stmt],
        read: tuple[te.Expr, ...] = (),
    ) -> ir.Stmt:
        """Read the constants of a channel, once: what int8_t points to may be the table."""
        if len(read) == requantise.WORDS:
            return body(read)
        value = load(self.table, row, len(read))
        return let(_NAMES[len(read)], value, lambda word: self._words(row, body, (*read, word)))

    def _tile(
        self, words: tuple[te.Expr, ...], number: te.Expr, channel: te.Expr, tile: te.Expr
    ) -> ir.Stmt:
        lines = ir.Buffer("lines", (SIDE, OUTPUTS), DType.INT32, ir.Scope.LOCAL)

        def line(place: te.Expr, row: int) -> ir.Stmt:
            values = (load(self.sums, row * SIDE + n, place) for n in range(SIDE))
            results = winograd.outputs_of(*values)
            return seq(*(store(lines, (row, n), x) for n, x in enumerate(results)))

        def output(row: int) -> ir.Stmt:
            parts = []
            for column in range(OUTPUTS):
                total = winograd.outputs_of(*(load(lines, n, column) for n in range(SIDE)))[row]
                place = tile * OUTPUTS + column, channel
                parts.append(self._rescaled(total, words, partial(store, self.rows[row], place)))
            return seq(*parts)

        def body(place: te.Expr) -> ir.Stmt:
            second = when(self.count > 1, output(1))
            return seq(*(line(place, row) for row in range(SIDE)), second, output(0))

        place = number * TILES + tile
        return ir.Allocate(lines, let("place", place, body))

    def _rescaled(
        self, total: te.Expr, words: tuple[te.Expr, ...], write: Callable[[te.Expr], ir.Stmt]
    ) -> ir.Stmt:
        """Emit `write` of what four times a sum is stored as."""
        bias, factor, rounding, shift = words
        doubled = te.cast(DType.INT64, (total >> 1) + bias)
        product = doubled * te.cast(DType.INT64, factor)

        def behind(high: te.Expr) -> ir.Stmt:
            return write(self.finish.stored(high, rounding, shift))

        return let("product", product, lambda wide: let("high", upper_word(wide), behind))
