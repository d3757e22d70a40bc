"""Fully connected layers: eight outputs for each pass over the inputs.

Weights that are int8 and a number that they share are packed without it, where there are few
outputs: registers that other sums would take add up the inputs, which the number multiplies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Array, Node
from microtir.kernels.arm_dsp import float_rescaling, lane_sums, patch_sums
from microtir.kernels.common import counted, macro_kernel, micro_kernel, packing, refusals
from microtir.kernels.common.dense import dense_rows, rows_of
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import made_once, of_node
from microtir.kernels.common.requantise import WORDS, Rescaling
from microtir.kernels.common.statements import at, let, load, loop, seq, store
from microtir.measure.printed import Printed, printed
from microtir.operators.dense.definition import FullyConnected
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_QUAD = 4
_PASS = 8  # outputs: as many sums as there are registers for
_QUADS_PER_TURN = 4
LARGEST = 0xFFFF  # what MOVW loads


@dataclass(frozen=True, slots=True)
class Block:
    """`passes` over the inputs of `pairs` pairs of outputs each, from output `first` on.

    All weights are `number` more than those that are packed.
    """

    first: int
    pairs: int
    passes: int
    number: int = 0

    @property
    def outputs(self) -> int:
        return self.passes * self.pairs * 2


def _blocks(outputs: int) -> list[Block]:
    """Cover all outputs; where their number is odd, one of them is computed twice."""
    passes, rest = divmod(outputs, _PASS)
    blocks = [Block(0, _PASS // 2, passes)] if passes else []
    if rest % 2 and passes:
        return [*blocks, Block(passes * _PASS - 1, (rest + 1) // 2, 1)]
    if rest > 1:
        blocks.append(Block(passes * _PASS, rest // 2, 1))
    return [*blocks, Block(outputs - 2, 1, 1)] if rest % 2 else blocks


def arranged(weights: Array) -> Array:
    """Return weights (outputs, K) by what one input word meets: (outputs, K / 4, 2, 2)."""
    quads = weights.reshape(len(weights), -1, 2, 2)
    result: Array = quads.transpose(0, 1, 3, 2)
    return result


@of_node
def _packed(node: Node) -> list[tuple[Block, packing.PackedLinear]] | None:
    weights = node.inputs[1].values
    number = 0 if weights.dtype == np.int8 else patch_sums.shared_part(weights)
    if number is None or (number and len(weights) >= _PASS):
        return None
    packed = packing.pack_linear(arranged(weights), node, number)
    if packed is None:
        return None
    parts = []
    for block in _blocks(len(weights)):
        block = replace(block, number=number)
        lanes = packed.lanes_of(block.first, block.outputs)
        if lanes is None:
            return None
        shape = (block.passes, block.pairs, *lanes.shape[1:])
        ordered = lanes.reshape(shape).transpose(0, 2, 3, 1, 4)
        parts.append((block, packed.part(ordered, block.first, block.outputs)))
    return parts


class Dense(float_rescaling.FloatRescaling, counted.Counted):
    """Eight outputs a pass, two for each packed weight."""

    name = "dense_s8_1x8_dsp"
    operators = (FullyConnected,)
    needs = Feature.DSP
    cycles = 139
    measured_on, family = "cortex-m4", "dense_1x8_dsp"
    has_wide_weights = True
    fewest = 2  # outputs

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it.

        Int8, whole quads of inputs, weights that fit the packed form.
        """
        reason = refusals.int8_refusal(node)
        if reason is not None:
            return reason
        outputs, inputs = node.inputs[1].shape
        if outputs < self.fewest:
            return Refusal.FEW_CHANNELS
        if inputs % _QUAD or max(inputs, outputs) > LARGEST:
            return Refusal.SIZES
        return Refusal.FORM if self.parts(node) is None else None

    def printed(self, node: Node, _calls: Calls) -> int:
        """Return the instructions of all passes over each row."""
        quads = node.inputs[1].shape[1] // _QUAD
        return rows_of(node) * sum(
            body.instructions({"bne 1b": block.passes, "bne 2b": block.passes * quads // repeats})
            for block, body, repeats in self.bodies(node)
        )

    def around(self, node: Node, _calls: Calls) -> Mapping[str, int]:
        """Return the calls, for each row one or two."""
        rows = rows_of(node)
        return {
            "layer": 1, "row": rows if rows > 1 else 0, "call": rows * self.calls_of(node)
        }  # fmt: skip

    def calls_of(self, node: Node) -> int:
        return len(_blocks(node.inputs[1].shape[0]))

    def code_bytes(self, node: Node) -> int:
        return sum(body.bytes for _, body, _ in self.bodies(node))

    def bodies(self, node: Node) -> Iterator[tuple[Block, Printed, int]]:
        """Yield the blocks of outputs, what is printed for each, how many quads a turn has."""
        parts, inputs = refusals.asked(self.parts(node)), node.inputs[1].shape[1]
        for block, packed in parts:
            values = _values(inputs, block.pairs, block.outputs, packed.rescaling, block.number)
            yield block, printed("kernels/dense.j2", values), repeats(inputs // _QUAD)

    def parts(self, node: Node) -> list[tuple[Block, packing.PackedLinear]] | None:
        """Return the constants of each block; None: they do not fit the packed form."""
        return _packed(node)

    def micro_kernel(self, inputs: int, block: Block, rescaling: Rescaling) -> KernelDescription:
        """Return the kernel that computes a block for a row."""
        return dense(inputs, block.pairs, block.passes, rescaling, block.number)

    def packed_bytes(self, node: Node) -> int:
        outputs, inputs = node.inputs[1].shape
        return sum(packing.channel_bytes(b.outputs, 1, inputs) for b in _blocks(outputs))

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: one call of the kernel, or two, for each row of inputs."""
        parts = refusals.asked(self.parts(layer.node))
        inputs = layer.node.inputs[1].shape[1]
        products = tuple(
            macro_kernel.Product(
                partial(self._of_row, inputs, block, packed.rescaling),
                (at(packed.weights, 0, 0, 0, 0, 0), at(packed.constants, 0, 0)),
                block.first,
            )
            for block, packed in parts
        )
        return dense_rows(layer, name, macro_kernel.Tile((macro_kernel.Count(1, "row"),), products))

    def _of_row(
        self, inputs: int, block: Block, rescaling: Rescaling, _rows: int
    ) -> KernelDescription:
        return self.micro_kernel(inputs, block, rescaling)


@made_once
def dense(
    inputs: int, pairs: int, passes: int, rescaling: Rescaling | None, number: int = 0
) -> KernelDescription:
    """Compute `passes` over `inputs` values (a multiple of 4), each of 2 * `pairs` <= 8 outputs.

    All weights are `number` more than those that are packed; then there are at most 6 outputs.

    Returns:
        Parameters: inputs, weights (passes, inputs / 4, 2, pairs, 2) dual-packed int16, constants
        (outputs, 4) int32, outputs. Without a rescaling there are no constants, and outputs are the
        sums.
    """
    quads, outputs = inputs // _QUAD, passes * pairs * 2
    x = ir.Buffer("x", (inputs,), DType.INT8)
    weights = ir.Buffer("weights", (passes, quads, 2, pairs, 2), DType.INT16, alignment=4)
    constants = ir.Buffer("constants", (outputs, WORDS), DType.INT32)
    y = ir.Buffer("y", (outputs,), DType.INT32 if rescaling is None else DType.INT8)
    low, high = lane_sums.local_sums(pairs)

    def value(turn: te.Expr, quad: te.Expr, byte: int) -> ir.Stmt:
        half, place = byte % 2, byte // 2

        def multiply(pair: te.Expr, v: te.Expr) -> ir.Stmt:
            return lane_sums.split_lane(
                load(weights, turn, quad, half, pair, place),
                lambda a, b: seq(
                    store(low, (pair,), load(low, pair) + v * (a + number)),
                    store(high, (pair,), load(high, pair) + v * (b + number)),
                ),
            )

        wide = te.cast(DType.INT32, load(x, quad * _QUAD + byte))
        return let("value", wide, lambda v: loop("pair", 0, pairs, lambda p: multiply(p, v)))

    def one(turn: te.Expr) -> ir.Stmt:
        def output(sums: ir.Buffer, pair: te.Expr, number: int) -> ir.Stmt:
            place, total = (turn * pairs + pair) * 2 + number, load(sums, pair)
            if rescaling is not None:
                total = rescaling.apply(total * 2, constants, place)
            return store(y, (place,), total)

        zero = lane_sums.cleared(pairs, low, high)
        sums = loop(
            "quad", 0, quads, lambda quad: seq(*(value(turn, quad, byte) for byte in range(_QUAD)))
        )
        last = loop("pair", 0, pairs, lambda p: seq(output(low, p, 0), output(high, p, 1)))
        return ir.Allocate(low, ir.Allocate(high, seq(zero, sums, last)))

    less = f"_from{-number % 256}" if number else ""
    name = "sums" if rescaling is None else rescaling.name + less
    return micro_kernel.describe(
        f"dense_{inputs}x{pairs}x{passes}_{name}",
        (f"Fully connected: {inputs} inputs, {outputs} outputs, {2 * pairs} at a time",),
        (x, weights, y) if rescaling is None else (x, weights, constants, y),
        (y,),
        loop("turn", 0, passes, one),
        "kernels/dense.j2",
        _values(inputs, pairs, outputs * y.dtype.bytes, rescaling, number),
        stack_bytes=60,
    )


def _values(
    inputs: int, pairs: int, output_bytes: int, rescaling: Rescaling | None, number: int
) -> dict[str, object]:
    return {
        "rescaling": None if rescaling is None else rescaling.values(),
        "input_bytes": str(inputs),
        "output_bytes": str(output_bytes),
        "outputs": str(2 * pairs),
        "repeats": str(repeats(inputs // _QUAD)),
        "number": str(number) if number else "",
        **_registers(pairs),
    }


def repeats(quads: int) -> int:
    """Return how many quads of inputs a turn has."""
    return max(n for n in range(1, _QUADS_PER_TURN + 1) if quads % n == 0)


def _registers(pairs: int) -> dict[str, object]:
    """Return the registers of the sums, r0 to r7, and which pairs load their weights together."""
    sums = [{"low": f"r{2 * n}", "high": f"r{2 * n + 1}"} for n in range(pairs)]
    groups = [
        {"first": sums[n], "second": sums[n + 1] if n + 1 < pairs else None}
        for n in range(0, pairs, 2)
    ]
    return {"sums": [f"r{n}" for n in range(2 * pairs)], "groups": groups, "outputs_of": sums}
