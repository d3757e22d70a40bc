"""Layers whose weights have a scale for each block, of rows that are rounded to int8.

A micro-kernel rounds a row to int16 in scratch; another one multiplies it with four channels per
iteration, two products an instruction, and makes a float of the sum of a block.  Words of weights
of the four channels follow each other.  Weights lie in them as they are unpacked, with a sign: of
bytes the first and third are widened at once, of integers of four bits the uppermost of both halves
of a word, which are left where they are: 4096 times as much, by which scales are divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.config import Feature
from microtir.config.target import Target
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.gemm import number_of
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import made_once, of_node
from microtir.kernels.common.micro_kernel import Sizes, call, describe
from microtir.kernels.common.packing import constant
from microtir.kernels.common.statements import at, each, let, load, loop, seq, store, when
from microtir.measure.printed import Printed, printed
from microtir.operators.block_dense.definition import LARGEST, LEAST, BlockDense, block_dense_inputs
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_CHANNELS = 4  # a turn
_WORD = 4  # bytes
_TURN = 8  # the most words of a channel that a turn of the innermost loop takes
_LONGEST = 1 << 16  # elements of a row, and outputs of one
_LONGEST_BLOCK = {4: 512, 8: _LONGEST}  # of which a sum fits
_SHIFTED = {4: 4096, 8: 1}  # by which weights are too large
_LAYER, _ROW = 8, 22  # instructions around the calls
_INFINITE, _MAGNITUDE = 0x7F800000, 0x7FFFFFFF  # of floats, as bits


@dataclass(frozen=True, slots=True)
class _Form:
    """Sizes of a layer: its micro-kernels are made for some, and others say how often they run."""

    bits: int
    block: int
    has_bias: bool
    rows: int
    depth: int
    channels: int

    @staticmethod
    def of(node: Node) -> _Form:
        op, (*_, depth) = node.attributes(BlockDense), node.inputs[0].shape
        rows = node.inputs[0].type.elements // depth
        return _Form(op.bits, op.block, op.has_bias, rows, depth, node.inputs[1].shape[0])

    @property
    def blocks(self) -> int:
        return -(-self.depth // self.block)

    @property
    def words(self) -> int:
        return self.block * self.bits // (8 * _WORD)

    @property
    def turns(self) -> int:
        return self.words // min(self.words, _TURN)

    def calls(self) -> Iterator[tuple[int, int, int]]:
        """Yield for each call of a row the first group, how many, and the first channel.

        The last channels of a number that is not divided overlap those before.
        """
        groups, rest = divmod(self.channels, _CHANNELS)
        yield 0, groups, 0
        if rest:
            yield groups, 1, self.channels - _CHANNELS

    def by_group(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        parts = [values[n : n + c * _CHANNELS] for _, c, n in self.calls()]
        return np.concatenate(parts).reshape(-1, _CHANNELS, *values.shape[1:])

    def printed_row(self) -> Printed:
        return printed("kernels/rounded_row.j2", {})

    def printed_products(self) -> Printed:
        return printed("kernels/block_products.j2", self.values())

    def values(self) -> dict[str, object]:
        return {
            "bits": str(self.bits),
            "turn": str(min(self.words, _TURN)),
            "turns": str(self.turns) if self.turns > 1 else "",
            "more": str(self.words - 1) if self.words > 1 else "",
            "shift": str((2 * self.block).bit_length() - 1),
            "has_bias": self.has_bias,
        }

    def instructions(self) -> int:
        turns = {f"bne {n}b": self.depth // _CHANNELS for n in (1, 2)}
        count, body = self.printed_row().instructions(turns), self.printed_products()
        for _, groups, _ in self.calls():
            blocks = groups * self.blocks
            count += body.instructions(
                {"bne 1b": groups, "bne 2b": blocks, "bne 3b": blocks * self.turns}
            )
        return count


class BlockDenseRounded(Kernel):
    """Four channels per iteration."""

    name = "blocks_s8_1x4_dsp"
    operators = (BlockDense,)
    needs = Feature.DSP
    cycles = 140

    def suits(self, target: Target) -> bool:
        return target.has(Feature.FPU)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it.

        Rows of floats that are not rounded, other bits, zero points, few channels, long blocks.
        """
        op, form = node.attributes(BlockDense), _Form.of(node)
        if not op.rounds_rows or op.bits not in _LONGEST_BLOCK:
            return Refusal.TYPES
        if op.has_zero_points:
            return Refusal.FORM
        if form.channels < _CHANNELS:
            return Refusal.FEW_CHANNELS
        # Words of weights are whole, and so are turns of them.
        is_whole = form.depth % _CHANNELS == 0 and op.block & (op.block - 1) == 0
        if not is_whole or op.block < 2 * 8 or op.block > _LONGEST_BLOCK[op.bits]:
            return Refusal.SIZES
        return None if max(form.blocks * op.block, form.channels) < _LONGEST else Refusal.SIZES

    def window(self, _node: Node) -> None:
        """Return None: rows are counted over all of them."""
        return

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        form = _Form.of(node)
        return form.blocks * form.block * DType.INT16.bytes

    def instructions(self, node: Node, _calls: Calls) -> int:
        form = _Form.of(node)
        calls = len(list(form.calls())) + 1
        return _LAYER + form.rows * (form.instructions() + calls * _ROW // 2)

    def code_bytes(self, node: Node) -> int:
        form = _Form.of(node)
        return form.printed_row().bytes + form.printed_products().bytes

    def packed_bytes(self, node: Node) -> int:
        return sum(array.nbytes for array in _packed(node) if array is not None)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit for each row the call that rounds it, and those that multiply it."""
        form = _Form.of(layer.node)
        weights, scales, bias = (
            None if array is None else constant(word, array)
            for word, array in zip(("weights", "scales", "bias"), _packed(layer.node), strict=True)
        )
        assert weights is not None and scales is not None
        x = layer.whole(0, (form.rows, form.depth)).buffer
        y = layer.output_buffer((form.rows, form.channels))
        padded = form.blocks * form.block
        # One row, so that whoever follows rows of buffers sees one span of bytes.
        scratch = ir.Buffer("scratch", (1, padded), DType.INT16, alignment=4)
        factor = ir.Buffer("factor", (1,), DType.FLOAT32, ir.Scope.LOCAL)

        def product(row: te.Expr, first: int, groups: int, channel: int) -> ir.Stmt:
            of_bias = () if bias is None else (at(bias, first, 0),)
            return call(
                _products(form.bits, form.block, groups, form.blocks, form.has_bias),
                at(scratch, 0, 0), at(weights, first, 0, 0, 0, 0), at(scales, first, 0, 0),
                at(factor, 0), *of_bias, at(y, row, channel),
            )  # fmt: skip

        def one(row: te.Expr) -> ir.Stmt:
            rounded = call(_rounded(form.depth), at(x, row, 0), at(scratch, 0, 0), at(factor, 0))
            return seq(rounded, *(product(row, *of_call) for of_call in form.calls()))

        body = each("row", form.rows, one)
        if padded > form.depth:
            body = seq(loop("i", form.depth, padded, lambda i: store(scratch, (0, i), 0)), body)
        return layer.function(name, scratch, ir.Allocate(factor, body))


@of_node
def _packed(
    node: Node,
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32], npt.NDArray[np.float32] | None]:
    """Return weights (groups, blocks, words, 4, bytes), scales (groups, blocks, 4) and a bias."""
    form, inputs = _Form.of(node), block_dense_inputs(node)
    stored, scales = inputs.weights.values, inputs.scales.values
    words = stored.reshape(form.channels, form.blocks, form.words, _WORD).astype(np.uint8)
    if form.bits == 8:
        ordered = words[..., [0, 2, 1, 3]] ^ np.uint8(0x80)
    else:
        nibbles = np.stack([words & 15, words >> 4], axis=-1).reshape(*words.shape[:-1], 8)
        # From the lowest one on: of each half of a word the last is taken first.
        halves = nibbles[..., [6, 4, 2, 0, 7, 5, 3, 1]] ^ 8
        ordered = halves[..., 0::2] | halves[..., 1::2] << 4
    weights = form.by_group(ordered).transpose(0, 2, 3, 1, 4).view(np.int8)
    divided = (scales / np.float32(_SHIFTED[form.bits])).astype(np.float32)
    by_block = np.ascontiguousarray(form.by_group(divided).transpose(0, 2, 1))
    bias = None if inputs.bias is None else inputs.bias.data
    return (
        np.ascontiguousarray(weights),
        by_block.astype(np.float32),
        None if bias is None else form.by_group(bias).astype(np.float32),
    )


# --- micro-kernels --------------------------------------------------------------------------------


@made_once
def _rounded(depth: int) -> KernelDescription:
    """Round a row; parameters: its floats, its integers, what a 1 stands for; then its quads."""
    sizes = Sizes()
    quads = sizes.number("quads", depth // _CHANNELS, 1, _LONGEST // _CHANNELS)
    x = ir.Buffer("x", (quads, _CHANNELS), DType.FLOAT32)
    y = ir.Buffer("y", (quads, _CHANNELS), DType.INT16, alignment=4)
    factor = ir.Buffer("factor", (1,), DType.FLOAT32)
    bits = ir.Buffer("bits", (), DType.INT32, ir.Scope.LOCAL)

    def elements(body: Callable[[te.Expr, te.Expr], ir.Stmt]) -> ir.Stmt:
        return loop("quad", 0, number_of(quads), lambda quad: loop(
            "i", 0, _CHANNELS, lambda i: body(quad, i)
        ))  # fmt: skip

    def larger(quad: te.Expr, i: te.Expr) -> ir.Stmt:
        magnitude = te.bits_of_float(load(x, quad, i)) & _MAGNITUDE
        return store(bits, (), te.maximum(load(bits), magnitude))

    def rounded(largest: te.Expr) -> ir.Stmt:
        is_small = largest < LEAST
        inverse = te.select(is_small, 0.0, te.const(float(LARGEST), DType.FLOAT32) / largest)
        return seq(
            store(factor, (0,), te.select(is_small, 0.0, largest / float(LARGEST))),
            let("inverse", inverse, lambda by: when(
                load(bits) < _INFINITE,
                elements(lambda quad, i: store(y, (quad, i), te.cast(
                    DType.INT16, te.cast(DType.INT32, te.round_small(load(x, quad, i) * by))
                ))),
                elements(lambda quad, i: store(y, (quad, i), 0)),
            )),
        )  # fmt: skip

    body = seq(
        store(bits, (), 0), elements(larger), let("largest", te.float_of_bits(load(bits)), rounded)
    )
    return describe(
        "rounded_row", ("Rounds a row to 8 bits by its largest magnitude",), (x, y, factor),
        (y, factor), ir.Allocate(bits, body), "kernels/rounded_row.j2", {}, stack_bytes=24,
        needs=Feature.FPU, sizes=sizes,
    )  # fmt: skip


def _weights_of(bits: int) -> Iterator[tuple[int, int, bool]]:
    """Yield for each weight of a word its byte, and which half of that: 0, or 1 for the upper one.

    A byte that is one weight is no half.
    """
    if bits == 8:
        yield from ((byte, 0, False) for byte in (0, 2, 1, 3))
        return
    for pair in range(4):
        for half in (0, 2):
            yield (3 - pair) // 2 + half, (3 - pair) % 2, True


def _word(
    bits: int, part: ir.Buffer, byte: Callable[[int], te.Expr], value: Callable[[int], te.Expr]
) -> ir.Stmt:
    """Add the products of a word of weights to a sum, given its bytes and what they meet."""
    steps = []
    for k, (place, is_upper, is_half) in enumerate(_weights_of(bits)):
        weight = te.cast(DType.INT32, byte(place))
        if is_half:
            weight = weight >> 4 if is_upper else ((weight & 15) ^ 8) - 8
        product = te.cast(DType.INT32, value(k)) * (weight * _SHIFTED[bits])
        steps.append(store(part, (), load(part) + product))
    return seq(*steps)


@made_once
def _products(bits: int, block: int, groups: int, blocks: int, has_bias: bool) -> KernelDescription:
    """Multiply a row with groups of four channels.

    Returns:
        Parameters: row (blocks, block) int16; what `_packed` gives, with the factor of the row in
        front of the bias; outputs (groups, 4); then groups and blocks.
    """
    form = _Form(bits, block, has_bias, 1, blocks * block, groups * _CHANNELS)
    sizes = Sizes()
    group_count = sizes.number("groups", groups, 1, _LONGEST // _CHANNELS)
    block_count = sizes.number("blocks", blocks, 1, _LONGEST // 16)
    x = ir.Buffer("x", (block_count, block), DType.INT16, alignment=4)
    shape = (group_count, block_count, form.words, _CHANNELS, _WORD)
    weights = ir.Buffer("weights", shape, DType.INT8, alignment=4)
    scales = ir.Buffer("scales", (group_count, block_count, _CHANNELS), DType.FLOAT32)
    factor = ir.Buffer("factor", (1,), DType.FLOAT32)
    bias = ir.Buffer("bias", (group_count, _CHANNELS), DType.FLOAT32)
    y = ir.Buffer("y", (group_count, _CHANNELS), DType.FLOAT32)
    total = ir.Buffer("total", (), DType.FLOAT32, ir.Scope.LOCAL)
    part = ir.Buffer("part", (), DType.INT32, ir.Scope.LOCAL)

    def word(group: te.Expr, channel: te.Expr, number: te.Expr, at_word: te.Expr) -> ir.Stmt:
        byte = partial(load, weights, group, number, at_word, channel)
        value = partial(load, x, number)
        return _word(bits, part, byte, lambda k: value(at_word * (block // form.words) + k))

    def one(group: te.Expr, channel: te.Expr, number: te.Expr) -> ir.Stmt:
        sums = loop("word", 0, form.words, partial(word, group, channel, number))
        real, by = te.cast(DType.FLOAT32, load(part)), load(scales, group, number, channel)
        added = store(total, (), te.fused_multiply_add(real, by, load(total)))
        return seq(store(part, (), 0), sums, added)

    def output(group: te.Expr, channel: te.Expr) -> ir.Stmt:
        operands = load(total), load(factor, 0)
        result = operands[0] * operands[1]
        if has_bias:
            result = te.fused_multiply_add(*operands, load(bias, group, channel))
        sums = loop("number", 0, number_of(block_count), partial(one, group, channel))
        body = seq(store(total, (), 0.0), sums, store(y, (group, channel), result))
        return ir.Allocate(total, ir.Allocate(part, body))

    params = (x, weights, scales, factor, *((bias,) if has_bias else ()), y)
    return describe(
        f"block_products_{bits}_{block}{'_bias' * has_bias}",
        (f"Products with blocks of {block} weights of {bits} bits, four channels per iteration",),
        params,
        (y,),
        loop("group", 0, number_of(group_count), lambda group: loop(
            "channel", 0, _CHANNELS, partial(output, group)
        )),
        "kernels/block_products.j2",
        form.values(),
        stack_bytes=52,
        needs=Feature.FPU,
        sizes=sizes,
    )  # fmt: skip
