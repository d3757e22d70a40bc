"""Fully connected layers: several outputs for each pass over the inputs."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.ir import Node
from microtir.kernels.c_blocks.blocks import Blocks
from microtir.kernels.c_blocks.finish import Finish, Table, finish_of
from microtir.kernels.c_blocks.kernels import Block, BlockSize, Native, product
from microtir.kernels.common import dense, made_once, refusals, statements
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import Count, Product, Tile
from microtir.kernels.common.packing import channel_bytes, constant
from microtir.kernels.common.runs import Runs, turns_of
from microtir.operators.dense.definition import FullyConnected
from microtir.plan.ir import Calls, Refusal
from microtir.tir import ir

_MOST = 8  # outputs whose sums stay in registers
_LANES, _MOST_GROUPS = 4, 6
_TURN = 2  # inputs of a turn: with more, compilers for RISC-V load too many weights at a time
_CALL = 10  # instructions around a call of native code


@dataclass(frozen=True, slots=True)
class Form:
    """The form of the code that makes sums and turns them into outputs.

    Products and sums of floats may be kept apart (`no_fp_contract`); clamps of int8 may be
    `is_straight`, without a branch.  `native` has code for groups of `_LANES` outputs.
    """

    no_fp_contract: bool = False
    is_straight: bool = False
    native: Native | None = None


PLAIN = Form()
NO_FP_CONTRACT = Form(no_fp_contract=True)


@made_once.of_node
def _finish(node: Node, form: Form = PLAIN) -> tuple[Finish, Table | None] | None:
    return finish_of(node, no_fp_contract=form.no_fp_contract, is_straight=form.is_straight)


def _turn_cost(inputs: int, per_pass: int, finish: Finish) -> int:
    """Return the instructions of one pass over the inputs."""
    products = per_pass * (1 + finish.per_product)
    return inputs * (products + 1) + 6 * inputs // _TURN + per_pass * finish.instructions + 20


def _outputs_per_pass(node: Node, finish: Finish, form: Form) -> int:
    """Return outputs of one pass: what makes all of them cheapest."""
    outputs, inputs = node.inputs[1].shape
    native = form.native
    if native is not None:
        groups = range(_LANES, min(_LANES * _MOST_GROUPS, outputs) + 1, _LANES)
        return min(groups, key=lambda n: _native_cost(node, n, finish, native))
    return min(
        range(1, min(_MOST, outputs) + 1),
        key=lambda n: len(turns_of(outputs, n)) * _turn_cost(inputs, n, finish),
    )


def _size(node: Node, per_pass: int, finish: Finish, native: Native | None) -> BlockSize:
    outputs, inputs = node.inputs[1].shape
    runs = Runs(1, 1, inputs, inputs, inputs, inputs)
    return BlockSize(Block(1, per_pass, _TURN, native=native), runs, outputs, finish)


def _native_cost(node: Node, per_pass: int, finish: Finish, native: Native) -> int:
    return native.instructions(_size(node, per_pass, finish, native))


class Dense(Blocks[Form]):
    """Several outputs for each pass over the inputs."""

    operators = (FullyConnected,)
    rescales_in_float = True

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: a type, factors that fit the short requantisation."""
        reason = refusals.type_refusal(node, self.dtype)
        return Refusal.FORM if reason is None and _finish(node) is None else reason

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions, from counts of emulated Cortex-M3 and M4."""
        finish, _ = refusals.asked(_finish(node, self.form))
        outputs, inputs = node.inputs[1].shape
        per_pass = _outputs_per_pass(node, finish, self.form)
        if self.form.native is not None:
            native = _native_cost(node, per_pass, finish, self.form.native)
            return dense.rows_of(node) * (native + _CALL)
        row = len(turns_of(outputs, per_pass)) * _turn_cost(inputs, per_pass, finish) + 30
        return dense.rows_of(node) * row

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernel; other layers may use the same."""
        finish, _ = refusals.asked(_finish(node, self.form))
        per_pass = _outputs_per_pass(node, finish, self.form)
        if self.form.native is not None:
            return self.form.native.code_bytes(_size(node, per_pass, finish, self.form.native))
        products = per_pass * (1 + finish.per_product) + 1
        return 4 * (_TURN * products + per_pass * finish.instructions) + 120

    def packed_bytes(self, node: Node) -> int:
        finish, table = refusals.asked(_finish(node, self.form))
        outputs, inputs = node.inputs[1].shape
        words = 0 if table is None else table.shape[1]
        weights = inputs * node.inputs[1].dtype.bytes
        return channel_bytes(outputs, _outputs_per_pass(node, finish, self.form), weights, words)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: one call of the kernel for each row of inputs."""
        (finish, table), matrix = refusals.asked(_finish(layer.node, self.form)), layer.data(1)
        outputs, inputs = matrix.shape
        per_pass = _outputs_per_pass(layer.node, finish, self.form)
        starts = turns_of(outputs, per_pass)
        order = [start + n for start in starts for n in range(per_pass)]
        turns = matrix[order].reshape(len(starts), per_pass, inputs).transpose(0, 2, 1)
        weights = constant("weights", turns.reshape(len(starts), 1, 1, -1))
        operands = [statements.at(weights, 0, 0, 0, 0)]
        if table is not None:
            operands.append(statements.at(constant("constants", table[order]), 0, 0))
        size = _size(layer.node, per_pass, finish, self.form.native)
        kernel = product(size.block, size.runs, outputs, finish)
        tile = Tile((Count(1, "row"),), (Product(lambda _rows: kernel, tuple(operands)),))
        return dense.dense_rows(layer, name, tile)
