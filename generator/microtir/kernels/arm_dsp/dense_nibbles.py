"""Fully connected layers whose weights have four bits: half of the words of `dense.py`.

A word holds what two inputs of four channels are multiplied by.  Multiplied as it is, it gives the
sums of all four in one; with the uppermost channel masked, those of three, and so on: four products
and three masks for eight weights.  The lower three are stored as 8 more than they are.  What that
adds to their sums follows from the sum of the inputs, which is added up once a call.
"""

from __future__ import annotations

from collections.abc import Iterator

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp import dense
from microtir.kernels.common import micro_kernel, packing, refusals
from microtir.kernels.common.dense import rows_of
from microtir.kernels.common.made_once import made_once, of_node
from microtir.kernels.common.packed_weights import saved_bytes
from microtir.kernels.common.requantise import WORDS, Rescaling
from microtir.kernels.common.statements import let, load, loop, seq, store
from microtir.kernels.common.weights import NIBBLE, OCTET, QUAD, pack_nibbles
from microtir.measure.printed import Printed, printed
from microtir.plan.ir import Calls
from microtir.schedule import KernelDescription
from microtir.tir import ir

_TEMPLATE = "kernels/dense_nibbles.j2"


def _blocks(outputs: int) -> list[dense.Block]:
    """Cover all outputs: the last ones of a number that is not divided overlap those before."""
    passes, rest = divmod(outputs, OCTET)
    blocks = [dense.Block(0, QUAD, passes)] if passes else []
    if rest > QUAD:
        blocks.append(dense.Block(outputs - OCTET, QUAD, 1) if passes else dense.Block(0, 2, 1))
    if 0 < rest <= QUAD or (rest and not passes):
        blocks.append(dense.Block(outputs - QUAD, 2, 1))
    return blocks


@of_node
def _packed(node: Node) -> list[tuple[dense.Block, packing.PackedLinear]] | None:
    weights, factors = node.inputs[1].values, packing.requantised(node)
    if factors is None:
        return None
    arranged, parts = dense.arranged(weights), []
    for block in _blocks(len(weights)):
        rows = slice(block.first, block.first + block.outputs)
        lanes = pack_nibbles(arranged[rows])
        if lanes is None:
            return None
        ordered = lanes.reshape(block.passes, block.pairs // 2, *lanes.shape[1:]).transpose(
            0, 2, 3, 1, 4
        )
        words = packing.constant("weights", ordered)
        constants = packing.constant("constants", factors.constants[rows])
        parts.append((block, packing.PackedLinear(words, constants, factors.rescaling, arranged)))
    return parts


class DenseNibbles(dense.Dense):
    """Eight outputs a pass, four for each packed weight."""

    name = "dense_s4_1x8_dsp"
    cycles = 125
    has_wide_weights = False
    fewest = QUAD

    def printed(self, node: Node, _calls: Calls) -> int:
        quads = node.inputs[1].shape[1] // QUAD
        count = 0
        for block, body, repeats in self.bodies(node):
            turns = quads // repeats
            count += body.instructions(
                {"bne 1b": block.passes, "bne 2b": block.passes * turns, "bne 3b": turns}
            )
        return rows_of(node) * count

    def calls_of(self, node: Node) -> int:
        return len(_blocks(node.inputs[1].shape[0]))

    def weight_bytes(self, node: Node) -> int:
        return super().weight_bytes(node) - saved_bytes(node.inputs[1].type.elements)

    def packed_bytes(self, node: Node) -> int:
        outputs, inputs = node.inputs[1].shape
        return sum(packing.channel_bytes(b.outputs, 1, inputs // 2) for b in _blocks(outputs))

    def bodies(self, node: Node) -> Iterator[tuple[dense.Block, Printed, int]]:
        parts, inputs = refusals.asked(self.parts(node)), node.inputs[1].shape[1]
        for block, packed in parts:
            values = _values(inputs, block.pairs // 2, block.outputs, packed.rescaling)
            yield block, printed(_TEMPLATE, values), dense.repeats(inputs // QUAD)

    def parts(self, node: Node) -> list[tuple[dense.Block, packing.PackedLinear]] | None:
        return _packed(node)

    def micro_kernel(
        self, inputs: int, block: dense.Block, rescaling: Rescaling
    ) -> KernelDescription:
        return _kernel(inputs, block.pairs // 2, block.passes, rescaling)


def nibble(lane: te.Expr, number: int) -> te.Expr:
    """Return the weight of a channel of a lane, which is an int32."""
    return lane >> 12 if number == QUAD - 1 else (lane >> 4 * number & 15) - NIBBLE


def sums_of(number: int) -> dict[str, str]:
    """Return the registers of the sums of a quad of channels, by letters."""
    return {letter: f"r{QUAD * number + n}" for n, letter in enumerate("abcd")}


@made_once
def _kernel(inputs: int, groups: int, passes: int, rescaling: Rescaling) -> KernelDescription:
    """Compute `passes` over `inputs` values (a multiple of 4), each of one or two quads of outputs.

    Returns:
        Parameters: inputs, weights (passes, inputs / 4, 2, quads, 2) of four channels in an int16,
        constants (outputs, 4) int32, outputs.
    """
    quads, outputs = inputs // QUAD, passes * groups * QUAD
    x = ir.Buffer("x", (inputs,), DType.INT8)
    weights = ir.Buffer("weights", (passes, quads, 2, groups, 2), DType.INT16, alignment=4)
    constants = ir.Buffer("constants", (outputs, WORDS), DType.INT32)
    y = ir.Buffer("y", (outputs,), DType.INT8)
    sums = ir.Buffer("sums", (groups * QUAD,), DType.INT32, ir.Scope.LOCAL)

    def value(turn: te.Expr, quad: te.Expr, byte: int) -> ir.Stmt:
        def multiply(group: te.Expr, v: te.Expr) -> ir.Stmt:
            lane = te.cast(DType.INT32, load(weights, turn, quad, byte % 2, group, byte // 2))
            return let("lane", lane, lambda w: seq(*(
                store(sums, (group * QUAD + n,), load(sums, group * QUAD + n) + v * nibble(w, n))
                for n in range(QUAD)
            )))  # fmt: skip

        wide = te.cast(DType.INT32, load(x, quad * QUAD + byte))
        return let("value", wide, lambda v: loop("group", 0, groups, lambda g: multiply(g, v)))

    def one(turn: te.Expr) -> ir.Stmt:
        def output(n: te.Expr) -> ir.Stmt:
            place = turn * (groups * QUAD) + n
            return store(y, (place,), rescaling.apply(load(sums, n) * 2, constants, place))

        zero = loop("i", 0, groups * QUAD, lambda i: store(sums, (i,), 0))
        products = loop(
            "quad", 0, quads, lambda quad: seq(*(value(turn, quad, byte) for byte in range(QUAD)))
        )
        last = loop("output", 0, groups * QUAD, output)
        return ir.Allocate(sums, seq(zero, products, last))

    return micro_kernel.describe(
        f"dense_nibbles_{inputs}x{groups}x{passes}_{rescaling.name}",
        (f"Fully connected: {inputs} inputs, {outputs} outputs, weights of four bits",),
        (x, weights, constants, y),
        (y,),
        loop("turn", 0, passes, one),
        _TEMPLATE,
        _values(inputs, groups, outputs, rescaling),
        stack_bytes=64,
    )


def _values(inputs: int, groups: int, outputs: int, rescaling: Rescaling) -> dict[str, object]:
    return {
        "rescaling": rescaling.values(),
        "inputs": str(inputs),
        "outputs": str(outputs),
        "repeats": str(dense.repeats(inputs // QUAD)),
        "is_double": groups > 1,
        "groups": [{**sums_of(n), "word": f"r{10 + n}"} for n in range(groups)],
    }
