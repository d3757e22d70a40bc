"""The loops around micro-kernels: rows, blocks of pixels and what is left, for any instruction set.

A macro-kernel is a `Source` (how the inputs of a block are made ready), a `Tile` (the pixels that
a micro-kernel computes at once, and its constants) and a `Sink` (where outputs go).  Where the rows
of source and sink follow each other, the pixels of a row range are one line, so that blocks span
rows; else each row is cut into blocks.  Estimates are summed over the same blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from microtir import te
from microtir.dtype import DType
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.statements import each, let, loop, seq
from microtir.operators.common.rows import Extents
from microtir.plan.ir import Calls
from microtir.schedule import KernelDescription
from microtir.tir import ir

Arguments = tuple[ir.BufferArgument | te.Expr, ...]
"""Arguments of a call of a micro-kernel."""


@dataclass(frozen=True, slots=True)
class Pixel:
    """A pixel of the output."""

    row: te.Expr
    column: te.Expr

    def ahead(self, count: te.ExprLike) -> Pixel:
        """Return the pixel so many behind this one, in the same row or on the same line."""
        return Pixel(self.row, self.column + count)


@dataclass(frozen=True, slots=True)
class _PixelOfLine(Pixel):
    number: te.Expr
    width: int

    @staticmethod
    def of(number: te.Expr, width: int) -> _PixelOfLine:
        return _PixelOfLine(number // width, number % width, number, width)

    def ahead(self, count: te.ExprLike) -> Pixel:
        return _PixelOfLine.of(self.number + count, self.width)


Some = Callable[[Pixel, int], ir.Stmt]
"""Computes a block, given its first pixel and how many it has."""


@dataclass(frozen=True, slots=True)
class Count:
    """The number of pixels that a micro-kernel computes at once.

    Attributes:
        pixels: of a block.
        name: of the loop over blocks.
        unit: fewer pixels, a multiple of this, are a block, too, if that ends a row; 0: none are.
        overlaps: whether a last block of a row begins earlier, where it would leave the row: some
            pixels are computed twice.
        ends_apart: whether such a block stands behind the loop, where its column is a number: a
            minimum in its place hides from whoever follows accesses what a condition says of it.
    """

    pixels: int
    name: str
    unit: int = 0
    overlaps: bool = False
    ends_apart: bool = False

    @property
    def plural(self) -> str:
        """Return what the number of blocks is called."""
        return self.name + ("es" if self.name.endswith("ch") else "s")


@dataclass(frozen=True, slots=True)
class Blocks:
    """Consecutive blocks of a row or line: `times` blocks of `pixels`, from pixel `first` on."""

    first: int
    pixels: int
    times: int
    last: int  # where the last block begins, at most

    def begin(self, number: te.Expr) -> te.Expr:
        place = self.first + number * self.pixels
        overlaps = self.first + (self.times - 1) * self.pixels > self.last
        return te.minimum(place, self.last) if overlaps else place


def cut(width: int, counts: Sequence[Count]) -> Iterator[Blocks]:
    """Cut a row of `width` pixels into blocks: whole ones of each count, then what is left."""
    first = 0
    for count in counts:
        whole, left = divmod(width - first, count.pixels)
        ends = count.overlaps and left and width >= count.pixels
        if ends:
            whole, left = whole + (not count.ends_apart), 0
        yield Blocks(first, count.pixels, whole, width - count.pixels)
        first = min(first + whole * count.pixels, width)
        if ends and first < width:
            yield Blocks(width - count.pixels, count.pixels, 1, width - count.pixels)
            first = width
        if count.unit and left >= count.unit:
            left -= left % count.unit
            yield Blocks(first, left, 1, first)
            first += left
    assert first == width, "the last count leaves no pixel"


def times_of(rows: int, counts: Sequence[Count]) -> list[tuple[int, int]]:
    """Return the calls for so many rows: how many, and of how many rows."""
    return [(some.times, some.pixels) for some in cut(rows, counts) if some.times]


def cut_line(pixels: int, width: int, counts: Sequence[Count]) -> Iterator[Blocks]:
    """Cut a line of rows of `width` pixels into blocks, as the loops over its pixels do."""
    return cut(pixels, [Count(count.pixels, count.name) for count in line_counts(width, counts)])


def line_counts(width: int, counts: Sequence[Count]) -> Sequence[Count]:
    """Return counts up to the first one that leaves nothing of any number of rows."""
    for number, count in enumerate(counts, 1):
        if all(n % count.pixels == 0 for n in (width, *(c.pixels for c in counts[:number]))):
            return counts[:number]
    return counts


def lines(output: Extents, calls: Calls, *, spans_rows: bool) -> list[tuple[int, int]]:
    """Return the lines that an output is computed in: how many, and the pixels of each.

    A line is a row, or all rows of a call where blocks may span rows: not in a ring.
    """
    rows, width = output.images * output.height, output.width
    if not spans_rows or (calls.rows and not calls.alone):
        return [(rows, width)]
    at_once = calls.rows or max(rows, 1)
    count, left = divmod(rows, at_once)
    return [(count, at_once * width), (left, width)]


def all_blocks(
    output: Extents, calls: Calls, counts: Sequence[Count], *, spans_rows: bool
) -> list[tuple[int, int]]:
    """Return the blocks of all calls for an output: how many of how many pixels."""
    is_line = spans_rows and (calls.alone or not calls.rows)
    return [
        (number * blocks.times, blocks.pixels)
        for number, pixels in lines(output, calls, spans_rows=spans_rows)
        for blocks in (cut_line(pixels, output.width, counts) if is_line else cut(pixels, counts))
        if number * blocks.times
    ]


class Source(ABC):
    """The layout of the inputs of a block of pixels, and the statements that prepare them.

    Attributes:
        scratch: memory that the layer function is given, if it needs some.
        local: memory on the stack, if it needs some.
        is_line: whether the inputs of a row's pixels follow those of the row before.
    """

    scratch: ir.Buffer | None = None
    local: ir.Buffer | None = None
    is_line = False

    def prepare(self, _counts: Sequence[int]) -> ir.Stmt:
        """Emit what is done once in a call, for blocks of so many pixels."""
        return seq()

    def row(self, _row: te.Expr) -> ir.Stmt:
        """Emit what is done once for an output row, before its first block."""
        return seq()

    def block(self, _pixel: Pixel, _count: int) -> ir.Stmt:
        """Emit what is done for a block of so many pixels, before its product."""
        return seq()

    @abstractmethod
    def at(self, pixel: Pixel, count: int) -> ir.BufferArgument:
        """Return where the inputs of a block begin."""


class Sink(ABC):
    """The destination of the outputs of a block of pixels."""

    is_line = False  # whether the outputs of a row's pixels follow those of the row before

    @abstractmethod
    def at(self, pixel: Pixel, channel: te.ExprLike) -> Arguments:
        """Return what micro-kernels are given that write from a channel of a pixel on."""

    def row(self, _row: te.Expr) -> ir.Stmt:
        """Emit what is done for a row behind its last block."""
        return seq()


class Nhwc(Sink):
    """Outputs whose channels follow each other, pixel by pixel.

    Args:
        rows: of the output.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.is_line = rows.is_whole

    def at(self, pixel: Pixel, channel: te.ExprLike) -> Arguments:
        return (self._rows.at(pixel.row, pixel.column, channel),)


@dataclass(frozen=True, slots=True)
class Product:
    """A micro-kernel for each number of pixels, and its constants.

    Attributes:
        kernel: that for so many pixels; its parameters are inputs, constants and outputs.
        constants: packed weights, and what requantisation needs.
        channel: of the output that it writes first.
        first: channel of the input that it reads first, of a source whose places are of channels.
    """

    kernel: Callable[[int], KernelDescription]
    constants: tuple[ir.BufferArgument, ...]
    channel: te.ExprLike = 0
    first: te.ExprLike = 0


@dataclass(frozen=True, slots=True)
class Groups:
    """Products of groups of channels, which a block has one after the other.

    Attributes:
        count: of groups.
        product: of a group.
    """

    count: int
    product: Callable[[te.Expr], Product]


@dataclass(frozen=True, slots=True)
class Turns:
    """Products by constants that are made in memory, those of a few channels per iteration.

    A turn is for all blocks of a band of rows, whose inputs are made ready before and kept.

    Attributes:
        count: of turns.
        rows: of a band: those of the blocks, or some times as many.
        make: emits what makes the constants of a turn.
        product: of a turn.
    """

    count: int
    rows: int
    make: Callable[[te.Expr], ir.Stmt]
    product: Callable[[te.Expr], Product]


@dataclass(frozen=True, slots=True)
class Tile:
    """The block of outputs that is computed at once: counts of pixels, largest first, and products.

    Blocks have up to so many `rows` and begin at the first of them; source and sink know where a
    row range ends within a block.  What is computed by `turns` has no other products.
    """

    counts: tuple[Count, ...]
    products: tuple[Product, ...] | Groups
    rows: int = 1
    turns: Turns | None = None


def macro_kernel(
    layer: Layer,
    name: str,
    width: int,
    source: Source,
    tile: Tile,
    sink: Sink,
    rows: tuple[te.ExprLike, te.ExprLike] | None = None,
) -> ir.PrimFunc:
    """Return the layer function that computes all pixels of a row range.

    Args:
        layer: whose function it is.
        name: of the function.
        width: pixels of an output row.
        source: of the inputs.
        tile: of the micro-kernels.
        sink: of the outputs.
        rows: that are computed; None: those that the function is called for.
    """
    loops = pixel_loops(rows or (layer.y0, layer.y1), width, source, tile, sink)
    return layer.function(name, source.scratch, loops)


def pixel_loops(
    rows: tuple[te.ExprLike, te.ExprLike], width: int, source: Source, tile: Tile, sink: Sink
) -> ir.Stmt:
    """Return the loops over all pixels of a row range, as `macro_kernel` has them."""
    y0, y1 = (te.as_expr(y, DType.INT32) for y in rows)

    def multiply(product: Product, pixel: Pixel, count: int) -> ir.Stmt:
        return call(
            product.kernel(count),
            _from_channel(source.at(pixel, count), product.first),
            *product.constants,
            *sink.at(pixel, product.channel),
        )

    def block(pixel: Pixel, count: int) -> ir.Stmt:
        parts = tile.products
        if isinstance(parts, Groups):
            of_group = parts.product
            products = each("group", parts.count, lambda g: multiply(of_group(g), pixel, count))
        else:
            products = seq(*(multiply(product, pixel, count) for product in parts))
        return seq(source.block(pixel, count), products)

    def turn(turns: Turns, row: te.Expr, number: te.Expr) -> ir.Stmt:
        products = _over_band(row, y1, width, tile, partial(multiply, turns.product(number)))
        return seq(turns.make(number), products)

    def blocks(row: te.Expr) -> ir.Stmt:
        if tile.turns is None:
            return over_row(row, width, tile.counts, block)
        turns = loop("turn", 0, tile.turns.count, partial(turn, tile.turns, row))
        return seq(_over_band(row, y1, width, tile, block), turns)

    def some_rows(row: te.Expr) -> ir.Stmt:
        return seq(source.row(row), blocks(row), sink.row(row))

    if source.is_line and sink.is_line and tile.rows == 1:
        used = [count.pixels for count in line_counts(width, tile.counts)]
        loops = over_line(y0, y1, width, tile.counts, block)
    else:
        used = [blocks.pixels for blocks in cut(width, tile.counts) if blocks.times]
        at_once = tile.rows if tile.turns is None else tile.turns.rows
        loops = over_rows(y0, y1, at_once, some_rows)
    body = seq(source.prepare(used), loops)
    if source.local is not None:
        body = ir.Allocate(source.local, body)
    return body


def _from_channel(place: ir.BufferArgument, first: te.ExprLike) -> ir.BufferArgument:
    """Return a place so many channels on."""
    if isinstance(first, int) and first == 0:
        return place
    *others, channel = place.indices
    return replace(place, indices=(*others, (te.Expr(channel) + first).node))


def _over_band(row: te.Expr, y1: te.Expr, width: int, tile: Tile, some: Some) -> ir.Stmt:
    """Emit `some` for the blocks of the band that begins at a row."""
    assert tile.turns is not None
    if tile.turns.rows == tile.rows:
        return over_row(row, width, tile.counts, some)
    stop = te.minimum(row + tile.turns.rows, y1)
    return over_rows(row, stop, tile.rows, lambda y: over_row(y, width, tile.counts, some))


def over_rows(
    y0: te.Expr, y1: te.Expr, at_once: int, some: Callable[[te.Expr], ir.Stmt]
) -> ir.Stmt:
    """Emit `some` for rows [y0, y1), or for every first one of so many `together`."""
    if at_once == 1:
        return loop("row", y0, y1, some)
    # An empty range may be given with y1 < y0.
    times = (te.maximum(y1 - y0, 0) + (at_once - 1)) // at_once
    return loop("block", 0, times, lambda number: let("row", y0 + number * at_once, some))


def over_row(row: te.Expr, width: int, counts: Sequence[Count], some: Some) -> ir.Stmt:
    """Emit `some` for the blocks of a row: a loop over whole ones, then each that is left."""
    whole, *left = cut(width, counts)

    def block(blocks: Blocks, number: te.Expr) -> ir.Stmt:
        return some(Pixel(row, blocks.begin(number)), blocks.pixels)

    last = (block(b, te.as_expr(n, DType.INT32)) for b in left for n in range(b.times))
    return seq(loop(counts[0].name, 0, whole.times, partial(block, whole)), *last)


def over_line(y0: te.Expr, y1: te.Expr, width: int, counts: Sequence[Count], some: Some) -> ir.Stmt:
    """Emit `some` for the blocks of rows [y0, y1) whose pixels are one line.

    Rows of any width fill whole blocks.  The last count is 1, if one before leaves a pixel.
    """
    first, pixels = y0 * width, (y1 - y0) * width
    stop = first + pixels

    def blocks(start: te.Expr, left: te.Expr, counts: Sequence[Count]) -> ir.Stmt:
        count, *smaller = counts
        size = count.pixels

        def block(pixel: te.Expr) -> ir.Stmt:
            return some(_PixelOfLine.of(pixel, width), size)

        def behind(begin: te.Expr) -> ir.Stmt:
            return blocks(begin, stop - begin, smaller)

        def whole(times: te.Expr) -> ir.Stmt:
            loops = loop(count.name, 0, times, lambda n: block(start + n * size))
            if not smaller:
                return loops
            end = start + times * size
            return seq(loops, let("start", end, behind) if len(smaller) > 1 else behind(end))

        if size == 1:
            return loop(count.name, start, stop, block)
        # An empty range may be given with y1 < y0, which must not reach rows before y0.
        return let(count.plural, te.maximum(left, 0) // size, whole)

    return blocks(first, pixels, line_counts(width, counts))
