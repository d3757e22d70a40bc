"""SVDFs of int8 with a memory of int16: features are a product of matrices, outputs by vectors.

The old memory is copied with the newest features behind those of each filter. From there sums over
time read it one feature later, which is the new memory. Old and new memory may be one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.recurrent import outputs_over_time, time_of
from microtir.kernels.arm_mve import gemm_kernels, requantise
from microtir.kernels.arm_mve.linear import arranged, lanes_of, steps_of
from microtir.kernels.common import made_once, packing, refusals, svdf
from microtir.kernels.common.finish_s16 import Finish16, Sums
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.micro_kernel import call, describe
from microtir.kernels.common.statements import at, each, load, loop, seq, store
from microtir.kernels.common.weights import largest_sums
from microtir.measure.printed import Printed, printed
from microtir.operators.common.linear import LinearParams
from microtir.operators.common.multiplier import QuantizedMultiplier
from microtir.operators.recurrent import definition as recurrent
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_FORM = requantise.Rescaling16(
    Finish16(Sums.SHORT, DType.INT16.min, DType.INT16.max, corrects_ties=True), element=DType.INT8
)
_LANES = lanes_of(DType.INT16)
_LARGEST = 0xFFFF  # what MOVW loads
_MOST_SHIFTED = 31
_TURN, _STRAIGHT = 4, 4  # vectors
_SUMS = "r4", "r6", "r8", "r10"
_STEP = 21  # instructions around the calls of an input


def _features(node: Node) -> requantise.Ints | None:
    """Return the constants of the sums of features; None if they do not fit."""
    wide_weights = node.inputs[2].values.astype(np.int64)
    factor, memory = recurrent.svdf_params(node).feature, DType.INT16
    params = LinearParams(
        node.inputs[0].type.quant.zero_point, 0, (factor,), memory.min, memory.max
    )
    bias = -params.input_zero_point * wide_weights.sum(axis=1)
    return requantise.constants_of(params, bias, largest_sums(wide_weights))


def _time_weights(node: Node) -> npt.NDArray[np.int16]:
    """Return the weights of time of each unit, zeros behind them: (units, whole vectors)."""
    units = recurrent.svdf_extents(node).units
    rows = node.inputs[3].values.astype(np.int16).reshape(units, -1)
    padded: npt.NDArray[np.int16] = np.pad(rows, ((0, 0), (0, -rows.shape[1] % _LANES)))
    return padded


def _starts(node: Node) -> npt.NDArray[np.int32]:
    """Return the biases of units, zeros behind the last one."""
    units = recurrent.svdf_extents(node).units
    bias = node.inputs[4].values if len(node.inputs) > 4 else np.zeros(units)
    return np.pad(bias.astype(np.int32), (0, -units % requantise.LANES))


@made_once.of_node
def _constants(node: Node) -> tuple[ir.Buffer, ...] | None:
    """Return weights and constants of features, and those of time; None if they do not fit."""
    factors = _features(node)
    if factors is None:
        return None
    weights = arranged(node.inputs[2].values.astype(np.int8), lanes_of(DType.INT8))
    return (
        packing.constant("weights", weights),
        packing.constant("constants", requantise.by_lanes(factors)),
        packing.constant("time_weights", _time_weights(node)),
        packing.constant("starts", _starts(node)),
    )


class Filters(Kernel):
    """Four filters at a time, then four units."""

    name = "svdf_s8_1x4_mve"
    operators = (recurrent.Svdf,)
    needs = Feature.MVE
    has_wide_sums = True  # of time; those of features fit
    in_place = True
    cycles = 145

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: other types, factors that do not fit, sizes."""
        reason = refusals.svdf_refusal(node, DType.INT8, DType.INT8)
        if reason is not None:
            return reason
        if not svdf.has_short_memory(node):
            return Refusal.TYPES
        _, width, filters, length, _ = recurrent.svdf_extents(node)
        if max(width, 2 * filters * length, 2 * _LANES * length) > _LARGEST:
            return Refusal.SIZES
        is_near = recurrent.svdf_params(node).time.shift >= -_MOST_SHIFTED
        return None if is_near and _constants(node) is not None else Refusal.FORM

    def instructions(self, node: Node, _calls: Calls) -> int:
        batch, width, filters, length, units = recurrent.svdf_extents(node)
        turns, rest = divmod(filters * length, _TURN * _LANES)
        memory = _printed_memory(filters, length).instructions({
            "le lr, 1b": turns, "letp lr, 2b": steps_of(rest, _LANES),
            "letp lr, 3b": steps_of(filters, _LANES),
        })  # fmt: skip
        whole, groups = filters * length // units // _LANES, units // requantise.LANES
        time = _printed_time(node).instructions(
            {"bne 1b": groups, "le lr, 2b": groups * whole, "le lr, 3b": whole}
        )
        features = gemm_kernels.instructions(1, width, filters, _FORM)
        return batch * (features + memory + time + _STEP)

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        return _held(node) * DType.INT16.bytes

    def code_bytes(self, node: Node) -> int:
        _, width, filters, length, _ = recurrent.svdf_extents(node)
        others = _printed_memory(filters, length).bytes + _printed_time(node).bytes
        return gemm_kernels.code_size(1, width, filters, _FORM) + others

    def packed_bytes(self, node: Node) -> int:
        return packing.bytes_of(*refusals.asked(_constants(node)))

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: three calls for each input."""
        node, extents = layer.node, recurrent.svdf_extents(layer.node)
        batch, width, filters, length, _ = extents
        weights, constants, of_time, starts = refusals.asked(_constants(node))
        x, before = layer.whole(0).buffer, layer.whole(1).buffer
        y, after = layer.output_buffer(), layer.output_buffer()
        scratch = ir.Buffer("scratch", (_held(node),), DType.INT16, alignment=4)
        newest, first = at(scratch, filters * length + 1), at(scratch, 0)
        product = gemm_kernels.gemm(1, width, width, filters, _FORM)
        over_time = _over_time(*time_of(node))

        def step(n: te.Expr) -> ir.Stmt:
            packed = at(weights, 0, 0, 0, 0), at(constants, 0, 0, 0)
            return seq(
                call(product, at(x, n, 0), *packed, newest),
                call(_remembering(filters, length), at(before, n, 0), newest, first),
                call(over_time, at(scratch, 1), at(of_time, 0, 0), at(starts, 0), at(after, n, 0),
                     at(y, n, 0)),
            )  # fmt: skip

        return layer.function(name, scratch, each("n", batch, step))


def _held(node: Node) -> int:
    """Return the elements of scratch: a memory and one feature, and the newest ones."""
    _, _, filters, length, _ = recurrent.svdf_extents(node)
    return filters * length + 1 + filters


def _printed_memory(filters: int, length: int) -> Printed:
    return printed(_MEMORY, _memory_values(filters, length))


def _printed_time(node: Node) -> Printed:
    return printed(_TIME, _time_values(*time_of(node)))


_MEMORY, _TIME = "kernels/mve/svdf_memory.j2", "kernels/mve/svdf_time.j2"


def _memory_values(filters: int, length: int) -> dict[str, object]:
    turns, rest = divmod(filters * length, _TURN * _LANES)
    return {
        "turns": str(turns) if turns else "",
        "rest": str(rest) if rest else "",
        "filters": str(filters),
        "length": str(length),
        "step": str(length * DType.INT16.bytes),
    }


@made_once.made_once
def _remembering(filters: int, length: int) -> KernelDescription:
    """Copy a memory, and then the newest features; parameters: both, and where they go."""
    size = filters * length
    before, newest = (ir.Buffer(name, (count,), DType.INT16)
                      for name, count in (("before", size), ("newest", filters)))  # fmt: skip
    memory = ir.Buffer("memory", (size + 1,), DType.INT16)
    return describe(
        f"remember_{filters}x{length}", (f"A memory of {size} features and the newest ones",),
        (before, newest, memory), (memory,),
        seq(
            loop("i", 0, size, lambda i: store(memory, (i,), load(before, i))),
            loop("i", 0, filters, lambda i: store(
                memory, (i * length + length,), load(newest, i)
            )),
        ),
        _MEMORY, _memory_values(filters, length), stack_bytes=16, needs=Feature.MVE,
    )  # fmt: skip


def _time_values(
    terms: int, units: int, factor: QuantizedMultiplier, zero_point: int
) -> dict[str, object]:
    whole, tail = divmod(terms, _LANES)
    groups, last = divmod(units, requantise.LANES)
    return {
        "whole": str(whole) if whole else "",
        "loops": whole > _STRAIGHT,
        "tail": str(tail) if tail else "",
        "tail_bytes": str(tail * DType.INT16.bytes),
        "groups": str(groups) if groups else "",
        "sums": _SUMS,
        "last": _SUMS[:last],
        "last_count": str(last),
        "multiplier_low": str(factor.multiplier & 0xFFFF),
        "multiplier_high": str(factor.multiplier >> 16),
        "shift": str(-factor.shift),
        "zero_point": str(zero_point),
    }


@made_once.made_once
def _over_time(
    terms: int, units: int, factor: QuantizedMultiplier, zero_point: int
) -> KernelDescription:
    """Compute outputs; parameters: features, weights, biases, the memory that is kept, outputs."""
    row = steps_of(terms, _LANES) * _LANES
    padded = steps_of(units, requantise.LANES) * requantise.LANES
    params, body = outputs_over_time(terms, units, factor, zero_point, row, padded)
    features, weights, starts, y = params
    after = ir.Buffer("kept", features.shape, DType.INT16)
    name = f"time_{units}x{terms}_{factor.multiplier}_{-factor.shift}_{zero_point % 256}_keep"
    return describe(
        name, (f"{units} sums of {terms} products of int16, whose features are kept",),
        (features, weights, starts, after, y), (after, y),
        seq(body, loop("i", 0, units * terms, lambda i: store(after, (i,), load(features, i)))),
        _TIME, _time_values(terms, units, factor, zero_point), stack_bytes=36, needs=Feature.MVE,
    )  # fmt: skip
