"""LSTMs of int16 and SVDFs: eight gates, or filters, for each pass over a vector."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Array, Node
from microtir.kernels.arm_dsp.blocks_s16 import Block16, block, pack_weights
from microtir.kernels.arm_dsp.dense import LARGEST, arranged, dense
from microtir.kernels.common import finish_s16, packing, refusals, svdf
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import call, describe
from microtir.kernels.common.recurrent import block_cost, blocks_of, emit_blocks, packed_bytes
from microtir.kernels.common.runs import Runs
from microtir.kernels.common.statements import at
from microtir.kernels.common.weights import QUAD, pack_pairs
from microtir.measure.printed import number, printed
from microtir.operators.common.arithmetic import long, requantise, stored, wide, wrapped_int32
from microtir.operators.common.multiplier import QuantizedMultiplier
from microtir.operators.recurrent import definition as recurrent
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_PAIRS = 4  # of rows: those of two units
_ANY = DType.INT16.min, DType.INT16.max


@dataclass(frozen=True, slots=True)
class _Product:
    """Pairs of rows of a matrix, four at a time; `passes` of them are a block."""

    kernel: KernelDescription
    weights: ir.Buffer
    passes: int

    @staticmethod
    def of(matrix: Array) -> _Product:
        blocks, rows, width = matrix.shape
        passes = rows // (2 * _PAIRS)
        lanes = refusals.asked(pack_pairs(arranged(matrix.reshape(blocks * rows, width))))
        shape = (blocks * passes, _PAIRS, *lanes.shape[1:])
        ordered = lanes.reshape(shape).transpose(0, 2, 3, 1, 4)
        kernel = dense(width, _PAIRS, passes, None)
        return _Product(kernel, packing.constant("weights", ordered), passes)

    def call(self, block: te.Expr, vector: ir.BufferArgument, sums: ir.BufferArgument) -> ir.Stmt:
        """Emit the products of a block."""
        weights = at(self.weights, block * self.passes, 0, 0, 0, 0)
        return call(self.kernel, vector, weights, sums)


@dataclass(frozen=True, slots=True)
class _Product16:
    """Rows of a matrix for vectors of int16, eight at a time; `turns` of them are a block."""

    kernel: KernelDescription
    weights: ir.Buffer
    turns: int

    @staticmethod
    def of(matrix: Array) -> _Product16:
        _, rows, width = matrix.shape
        own_block = _block16(rows, width)
        packed = [pack_weights(some, own_block) for some in matrix.astype(np.int8)]
        return _Product16(
            block(own_block), packing.constant("weights", np.concatenate(packed)), own_block.turns
        )

    def call(self, block: te.Expr, vector: ir.BufferArgument, sums: ir.BufferArgument) -> ir.Stmt:
        """Emit the products of a block."""
        return call(self.kernel, vector, at(self.weights, block * self.turns, *[0] * 6), sums)


def _block16(rows: int, width: int) -> Block16:
    runs = Runs(1, 1, width, width, width, width)
    return Block16(1, 2 * _PAIRS, rows, runs, finish_s16.Finish16(finish_s16.Sums.RAW, *_ANY))


class Recurrent16(Kernel):
    """Eight gates a pass over vectors of int16."""

    name = "lstm_s16_1x8_dsp"
    operators = (recurrent.Lstm,)
    needs = Feature.DSP
    in_place = True
    cycles = 135

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: another type."""
        return refusals.recurrent_refusal(node, DType.INT16, DType.INT8)

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions, from counts of the emulated Cortex-M4."""
        return block_cost(node, 1.25, 25)

    def code_bytes(self, node: Node) -> int:
        _, _, inputs, units = recurrent.lstm_extents(node)
        rows = blocks_of(node).rows
        return sum(_block16(rows, width).printed.bytes for width in {inputs, units})

    def packed_bytes(self, node: Node) -> int:
        return packed_bytes(node, _Product16.of)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: two calls of kernels for each block of units."""
        return emit_blocks(layer, name, _Product16.of)


class _OverTime:
    """Products of two neighbours, of all units in one call."""

    def kernel(self, node: Node) -> KernelDescription:
        return _over_time(*time_of(node))

    def instructions(self, node: Node) -> int:
        terms, units, factor, zero_point = time_of(node)
        values = _time_values(terms, units, factor, zero_point)
        turns = {"bne 1b": units, "bne 2b": units * number(values, "turns")}
        return printed(_TIME, values).instructions(turns)


_OVER_TIME = _OverTime()
_TIME = "kernels/svdf_time.j2"
_PAIRS_PER_TURN, _PAIRS_AT_ONCE = 4, 16


def time_of(node: Node) -> tuple[int, int, QuantizedMultiplier, int]:
    """Return terms of a sum, units, and the factor and the zero point of outputs."""
    _, _, filters, length, units = recurrent.svdf_extents(node)
    factor, y = recurrent.svdf_params(node).time, node.outputs[0].type
    return filters * length // units, units, factor, y.quant.zero_point


def _time_values(
    terms: int, units: int, factor: QuantizedMultiplier, zero_point: int
) -> dict[str, object]:
    pairs, single = divmod(terms, 2)
    turns, rest = divmod(pairs, _PAIRS_PER_TURN) if pairs > _PAIRS_AT_ONCE else (0, pairs)
    return {
        "units": str(units),
        "turns": str(turns) if turns else "",
        "rest": str(rest) if rest else "",
        "single": bool(single),
        "multiplier_low": str(factor.multiplier & 0xFFFF),
        "multiplier_high": str(factor.multiplier >> 16),
        "shift": str(-factor.shift - 1) if factor.shift < -1 else "",
        "zero_point": str(zero_point) if zero_point else "",
    }


def outputs_over_time(
    terms: int, units: int, factor: QuantizedMultiplier, zero_point: int, row: int, starts_of: int
) -> tuple[tuple[ir.Buffer, ...], ir.Stmt]:
    """Add up products of int16 in 32 bits, which wrap, and rescale sums; as `OverTime` has it.

    A unit has so many terms, and weights that lie in a `row` of so many; starts are `starts_of`
    units.
    """
    features = te.placeholder((units * terms,), DType.INT16, "features")
    weights = te.placeholder((units, row), DType.INT16, "weights")
    starts = te.placeholder((starts_of,), DType.INT32, "starts")
    k = te.reduce_axis(0, terms, "k")

    def output(unit: te.Expr) -> te.Expr:
        product = long(wide(features[unit * terms + k]) * wide(weights[unit, k]))
        total = wrapped_int32(te.sum(product, k, init=long(starts[unit])))
        return stored(
            requantise(te.bind("total", total), factor), zero_point,
            DType.INT8.min, DType.INT8.max, DType.INT8,
        )  # fmt: skip

    y = te.compute((units,), output, "y")
    params = tuple(tensor.buffer for tensor in (features, weights, starts, y))
    return params, te.create_schedule(y).primfunc(name="outputs").body


@made_once
def _over_time(
    terms: int, units: int, factor: QuantizedMultiplier, zero_point: int
) -> KernelDescription:
    params, body = outputs_over_time(terms, units, factor, zero_point, terms, units)
    name = f"time_{units}x{terms}_{factor.multiplier}_{-factor.shift}_{zero_point % 256}"
    return describe(
        name, (f"{units} sums of {terms} products of int16",), params, params[3:],
        body, _TIME, _time_values(terms, units, factor, zero_point), stack_bytes=36,
    )  # fmt: skip


class Filters(Kernel):
    """Eight filters of an SVDF a pass, two for each packed weight."""

    name = "svdf_s8_1x8_dsp"
    operators = (recurrent.Svdf,)
    needs = Feature.DSP
    has_wide_sums = True  # of time; those of features fit
    in_place = True
    cycles = 135

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: int8, weights that fit the packed form."""
        reason = refusals.svdf_refusal(node, DType.INT8, DType.INT8)
        if reason is not None:
            return reason
        if max(recurrent.svdf_extents(node).width, svdf.blocks_of(node).rows) > LARGEST - QUAD:
            return Refusal.SIZES
        matrix = svdf.feature_weights(node, QUAD)
        rows: Array = matrix.reshape(-1, matrix.shape[-1])
        return Refusal.FORM if pack_pairs(arranged(rows)) is None else None

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions, from counts of the emulated Cortex-M4."""
        return svdf.block_cost(node, 0.97, 35, _OVER_TIME)

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        return svdf.scratch_bytes(node, QUAD)

    def code_bytes(self, _node: Node) -> int:
        return 600

    def packed_bytes(self, node: Node) -> int:
        return svdf.packed_bytes(node, _Product.of, QUAD)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: a call of the kernel for each block of filters."""
        return svdf.emit_blocks(layer, name, _Product.of, QUAD, _OVER_TIME)
