"""LSTMs by steps: all sums of a step in two calls, and all its cells in a third.

A micro-kernel multiplies the weights of all gates with the input, another form of it those with the
hidden state, and both rescale what they add up to arguments of gates, of which two units share a
word.  The third bends them, four at a time, on the lines of `sigmoid_table.signed_lines`, and makes
new cells and a new hidden state, which nothing of the step reads any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Array, Node, SumRange, TensorType
from microtir.kernels.arm_dsp import lane_sums
from microtir.kernels.arm_dsp.dense import LARGEST, arranged
from microtir.kernels.common import packing, refusals
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import made_once, of_node
from microtir.kernels.common.micro_kernel import call, describe, reading
from microtir.kernels.common.recurrent import Sequences
from microtir.kernels.common.statements import at, each, let, load, loop, seq, store
from microtir.kernels.common.weights import INPUT_MAGNITUDE, QUAD, pack_pairs
from microtir.measure.printed import Printed, printed
from microtir.operators.common import fixed_point
from microtir.operators.common.arithmetic import ShortRequantisation, wide
from microtir.operators.common.fixed_point import multiply_by_quantized_multiplier
from microtir.operators.common.multiplier import QuantizedMultiplier
from microtir.operators.common.sigmoid_table import LINES, signed_lines
from microtir.operators.common.sigmoid_table_formula import SignedLines
from microtir.operators.common.sums import any_value
from microtir.operators.recurrent import definition as recurrent
from microtir.operators.recurrent.formula import LARGEST_PRODUCT, IntegerStep
from microtir.plan.ir import IN_ONE_CALL, Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir, visitor

_ORDER = (0, 2, 1, 3)
"""The gates of a unit in the order in which cells need them: input, cell, forget, output."""

_ROWS = 2 * recurrent.GATES  # of a pair of units: as many words of weights meet four values
_PAIR_BYTES = recurrent.GATES * DType.INT32.bytes  # of arguments
_ON_STACK = 256  # bytes of arguments that lie there
_TURN, _STRAIGHT = 4, 4  # quads
_CALLS, _LAYER = 40, 30  # instructions around a step of a sequence, and around all of them
_COPIED = 9  # instructions for a unit's states, which begin as copies


@dataclass(frozen=True, slots=True)
class GateRescaling:
    """The rescaling of the sums of a gate to int16: bits to the left, or to the right behind it."""

    shift: int
    is_clamped: bool


def _gate(factor: QuantizedMultiplier, sums: SumRange) -> GateRescaling:
    ends = multiply_by_quantized_multiplier(np.array([sums.low, sums.high]), *factor)
    is_clamped = bool(ends.min() < DType.INT16.min or ends.max() > DType.INT16.max)
    return GateRescaling(factor.shift, is_clamped)


def _by_rows(gates: Sequence[Array]) -> Array:
    """Return what gates have of each unit (units, ...) by pairs of units: (rows, ...)."""
    stacked = np.stack(gates, axis=1)
    padded = np.pad(stacked, [(0, len(stacked) % 2), *[(0, 0)] * (stacked.ndim - 1)])
    pairs = padded.reshape(-1, 2, *padded.shape[1:]).swapaxes(1, 2)
    rows: Array = pairs.reshape(-1, *stacked.shape[2:])
    return rows


def _packed(rows: Array, starts: Array) -> Array | None:
    """Return words (pairs of units, ...): starts of raw sums, and dual-packed weights by quads."""
    width = rows.shape[1]
    full, rest = divmod(width, QUAD)
    padded = np.zeros((len(rows), (full + (rest > 0)) * QUAD), np.int8)
    padded[:, : full * QUAD] = rows[:, : full * QUAD]
    if rest:
        # The last quad begins earlier, if there is more than one.
        first = QUAD - rest if full else 0
        padded[:, full * QUAD + first : full * QUAD + first + rest] = rows[:, full * QUAD :]
    lanes = pack_pairs(arranged(padded))
    low, high = starts.reshape(-1, 2).T
    raw = 256 * high + low
    if lanes is None:
        return None
    largest = np.abs(lanes.astype(np.int64)).reshape(len(lanes), -1).sum(axis=1) * INPUT_MAGNITUDE
    if (np.abs(raw) + largest).max() > fixed_point.INT32_MAX:
        return None
    begins = np.stack([low, raw], axis=1).reshape(-1, _ROWS)
    by_turn = lanes.reshape(-1, recurrent.GATES, *lanes.shape[1:]).transpose(0, 2, 3, 1, 4)
    even, odd = (by_turn[..., number].astype(np.int64) for number in range(2))
    words = (even & 0xFFFF) | (odd << 16)
    joined = np.concatenate([begins, words.reshape(len(begins), -1)], axis=1)
    return fixed_point.wrap(joined).astype(np.int32)


@dataclass(frozen=True, slots=True)
class CellRescaling:
    """The arithmetic of cells that a micro-kernel is printed for."""

    params: recurrent.LstmParams
    hidden: TensorType

    @property
    def fits(self) -> bool:
        """Return whether the micro-kernel has a form for it."""
        params = self.params
        products = (params.added, params.hidden)
        scales = (ShortRequantisation.of(factor, LARGEST_PRODUCT) for factor in products)
        return (
            all(scale is not None for scale in scales)
            and max(params.added.shift, params.hidden.shift) <= 0
            and abs(self._start) + params.hidden.multiplier // 2 < fixed_point.INT32_MAX
            and params.cell_scaling.multiplier < 3 << 14
        )

    @property
    def _start(self) -> int:
        """Return what is added to hidden states in front of their last shift."""
        right = -self.params.hidden.shift
        return (self.hidden.quant.zero_point << right) + ((1 << right) >> 1)

    def values(self) -> dict[str, object]:
        params = self.params
        right, added = -params.hidden.shift, params.added
        is_shift = added.multiplier == 1 << 30 and 0 < -added.shift < 31
        low, high = params.cell_range
        is_clipped = (low, high) != (DType.INT16.min, DType.INT16.max)
        left = (params.cell_scaling.multiplier // 3).bit_length()
        cell_right = params.cell_scaling.right_shift
        return {
            **_halves("hidden", params.hidden.multiplier),
            **_halves("start", self._start),
            "hidden_right": _text(right),
            **({"added_low": "", "added_high": ""} if is_shift else
               _halves("added", added.multiplier)),
            "added_half": _text((1 << -added.shift) >> (0 if is_shift else 1)),
            "added_right": _text(-added.shift + is_shift),
            "clip_high": str(high) if is_clipped else "",
            "clip_low": str(low & 0xFFFF) if is_clipped else "",
            "cell_left": "" if cell_right else str(left),
            "cell_right": _text(cell_right),
            "cell_half": _text((1 << cell_right) >> 1),
        }  # fmt: skip

    def vector_values(self, units: int) -> dict[str, object]:
        """Return what a kernel is given that takes four units at once, beside `values`."""
        params, cell = self.params, self.params.cell_scaling
        left = 0 if cell.right_shift else (cell.multiplier // 3).bit_length()
        return {
            "units": str(units),
            **_halves("factor", params.added.multiplier),
            "added_shift": _text(-params.added.shift),
            "is_int16": self.hidden.dtype is DType.INT16,
            # To the left of 32 bits, of which an argument has the upper 18.
            "cell_shift": str(15 if cell.right_shift else 14 + left),
        }


def _text(value: int) -> str:
    return str(value) if value else ""


def _halves(name: str, value: int) -> dict[str, object]:
    return {f"{name}_low": str(value & 0xFFFF), f"{name}_high": str(value >> 16 & 0xFFFF)}


@dataclass(frozen=True, slots=True, eq=False)
class Gates:
    """The gates of an LSTM over inputs, or over the hidden state, in the order of `_ORDER`.

    Rows are (rows, width): of each pair of units the gates, of these both units.
    """

    rows: Array
    starts: Array
    factors: Sequence[QuantizedMultiplier]
    sums: Sequence[SumRange]


def sides_of(node: Node) -> tuple[Gates, ...]:
    """Return the gates over inputs, and those over the hidden state; none if sums do not fit.

    Those of int8 may leave 32 bits where they are shifted to the left.
    """
    params, tensors = recurrent.lstm_params(node), recurrent.gates_of(node)
    dtype = node.inputs[0].dtype
    sums = refusals.asked(recurrent.gate_sums(node, any_value(dtype)))
    factors = *params.inputs, *params.recurrent
    for factor, part in zip(factors, sums, strict=True):
        if dtype is DType.INT8 and not ShortRequantisation.of(factor, max(-part.low, part.high)):
            return ()

    def side(number: int, factors: Sequence[QuantizedMultiplier]) -> Gates:
        gates = [tensors[n] for n in _ORDER]
        matrices = [(t.recurrent if number else t.weights).values for t in gates]
        zero_point = node.inputs[number].type.quant.zero_point
        starts = [-zero_point * matrix.astype(np.int64).sum(axis=1) for matrix in matrices]
        if not number:
            biases = (t.bias.values.astype(np.int64) for t in gates)
            starts = [start + bias for start, bias in zip(starts, biases, strict=True)]
        return Gates(
            _by_rows(matrices), _by_rows(starts), [factors[n] for n in _ORDER],
            [sums[number * recurrent.GATES + n] for n in _ORDER],
        )  # fmt: skip

    return side(0, params.inputs), side(1, params.recurrent)


@dataclass(frozen=True, slots=True)
class Product:
    """Kernel that makes arguments of gates of a vector and constants, or adds to them."""

    kernel: KernelDescription
    constants: tuple[ir.Buffer, ...]
    instructions: int
    bytes: int


@of_node
def _products_of(node: Node) -> list[Product] | None:
    """Return the products of an LSTM, whose sums 32 bits hold; None if they do not fit."""
    products, pairs = [], pairs_of(node)
    for adds, side in enumerate(sides_of(node)):
        words, width = _packed(side.rows, side.starts), side.rows.shape[1]
        if words is None:
            return None
        gates = tuple(map(_gate, side.factors, side.sums))
        halves = [[f.multiplier, (1 << max(-f.shift, 0)) >> 1] for f in side.factors]
        weights = packing.constant("weights", words)
        factors = packing.constant("factors", np.array(halves, np.int32))
        body = printed(_SUMS, _sums_values(width, pairs, gates, adds > 0))
        turns = {"bne 1b": pairs, "bne 2b": _turns(width)[0] * pairs}
        kernel = _sums(width, pairs, gates, adds > 0)
        products.append(Product(kernel, (weights, factors), body.instructions(turns), body.bytes))
    return products or None


class CellForm(NamedTuple):
    """A kernel of cells: its template, the type of its arguments, what it needs, bytes of stack."""

    template: str
    argument: DType
    needs: Feature
    stack_bytes: int
    name: str


_PAIRS = CellForm("kernels/lstm_cells.j2", DType.INT32, Feature.DSP, 40, "cells")


def _cells_of(node: Node) -> CellRescaling:
    return CellRescaling(recurrent.lstm_params(node), node.inputs[1].type)


class Recurrent(Kernel):
    """Eight gates a pass, two for each packed weight, and the cells of two units a turn."""

    name = "lstm_s8_1x8_dsp"
    dtype = DType.INT8
    operators = (recurrent.Lstm,)
    needs = Feature.DSP
    in_place = True
    cycles = 135
    cells = _PAIRS
    products = staticmethod(_products_of)  # with inputs and with the hidden state

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: types, weights and factors that the form does not take."""
        reason = refusals.recurrent_refusal(node, self.dtype, DType.INT8)
        if reason is not None:
            return reason
        _, _, inputs, units = recurrent.lstm_extents(node)
        if max(inputs, _ROWS * (units + 1)) > LARGEST:
            return Refusal.SIZES
        fits = _cells_of(node).fits and self.products(node) is not None
        return None if fits else Refusal.FORM

    def instructions(self, node: Node, _calls: Calls) -> int:
        batch, steps, _, units = recurrent.lstm_extents(node)
        work = sum(product.instructions for product in refusals.asked(self.products(node)))
        turns = {"bne 1b": units // 2, "letp lr, 1b": -(-units // 4)}
        work += self._printed_cells(node).instructions(turns)
        return batch * (steps * (work + _CALLS) + units * _COPIED) + _LAYER

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        size = pairs_of(node) * _PAIR_BYTES
        return size if size > _ON_STACK else 0

    def code_bytes(self, node: Node) -> int:
        products = refusals.asked(self.products(node))
        return sum(product.bytes for product in products) + self._printed_cells(node).bytes

    def _printed_cells(self, node: Node) -> Printed:
        units = recurrent.lstm_extents(node).units
        return printed(self.cells.template, _cells_values(units, _cells_of(node)))

    def weight_bytes(self, node: Node) -> int:
        return super().weight_bytes(node) + signed_lines(saturates=True).nbytes

    def packed_bytes(self, node: Node) -> int:
        states = Sequences.of(Layer.alone(node)).begins
        data = [array for p in refusals.asked(self.products(node)) for array in p.constants]
        return signed_lines(saturates=True).nbytes + packing.bytes_of(*data, *states)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: three calls for each step of a sequence."""
        node, products = layer.node, refusals.asked(self.products(layer.node))
        sequences, pairs = Sequences.of(layer), pairs_of(node)
        has_scratch = self.scratch_bytes(node, IN_ONE_CALL) > 0
        scope = ir.Scope.PARAMETER if has_scratch else ir.Scope.LOCAL
        args = replace(arguments("scratch", pairs, self.cells.argument), scope=scope)
        lines = packing.constant("lines", signed_lines(saturates=True))
        first = at(args, *[0] * len(args.shape))
        zero = te.as_expr(0, DType.INT32)

        def sequence(step: te.Expr, n: te.Expr) -> ir.Stmt:
            vectors = (
                at(sequences.x.buffer, *sequences.place(step, n, zero)),
                at(sequences.hidden, n, 0),
            )
            calls = (
                call(p.kernel, vector, *(at(c, *[0] * len(c.shape)) for c in p.constants), first)
                for p, vector in zip(products, vectors, strict=True)
            )
            cells = call(
                _cells(sequences.extents.units, _cells_of(node), self.cells), first,
                at(lines, 0, 0),
                at(sequences.cell, n, 0), at(sequences.hidden, n, 0),
                at(sequences.y, *sequences.shown_at(step, n, zero)),
            )  # fmt: skip
            return seq(*calls, cells)

        batch = sequences.extents.batch
        body = sequences.over_time(lambda step: each("n", batch, lambda n: sequence(step, n)))
        if has_scratch:
            return layer.function(name, args, body)
        return layer.function(name, None, ir.Allocate(args, body))


def pairs_of(node: Node) -> int:
    """Return how many pairs of units there are; the last may lack one."""
    return -(-recurrent.lstm_extents(node).units // 2)


def arguments(name: str, pairs: int, dtype: DType) -> ir.Buffer:
    """Return the arguments of gates: two units in a word, or as they follow each other."""
    lanes = (2,) if dtype is DType.INT16 else ()
    return ir.Buffer(name, (pairs, recurrent.GATES, *lanes), dtype, alignment=4)


# --- sums -----------------------------------------------------------------------------------------

_SUMS = "kernels/lstm_sums.j2"


def _turns(width: int) -> tuple[int, int, int]:
    """Return turns of the loop over whole quads, the quads of one, and those behind it."""
    quads = width // QUAD
    if quads <= _STRAIGHT:
        return 0, 0, quads
    turn = min(range(_TURN, 1, -1), key=lambda n: quads % n)
    return quads // turn, turn, quads % turn


def _sums_values(
    width: int, pairs: int, gates: tuple[GateRescaling, ...], adds: bool
) -> dict[str, object]:
    (turns, turn, rest), single = _turns(width), width % QUAD
    words = pairs * _words(width) * DType.INT32.bytes
    return {
        **_halves("weights", words),
        "weights_high": _text(words >> 16),
        "turns_bytes": _text(turns * turn * QUAD),
        "turn": str(turn),
        "rest": _text(rest),
        "back": str(QUAD - single) if single and width > QUAD else "",
        "is_short": width < QUAD,
        "bytes": [{"place": str(n), "shift": str(8 * n)} for n in range(1, min(width, QUAD))],
        "gates": [_gate_values(n, gate) for n, gate in enumerate(gates)],
        "adds": adds,
    }  # fmt: skip


def _words(width: int) -> int:
    """Return the words of a pair of units: starts of sums, and weights."""
    return _ROWS + -(-width // QUAD) * _ROWS


def _gate_values(gate: int, rescaling: GateRescaling) -> dict[str, str]:
    left, right = max(rescaling.shift, 0), max(-rescaling.shift, 0)
    is_packed = not rescaling.is_clamped and 0 < right < 16
    return {
        "low": f"r{2 * gate}",
        "high": f"r{2 * gate + 1}",
        "factor": str(16 + 8 * gate),
        "low_bits": str(1 + left),
        "high_shift": "" if left == 7 else "asr" if left < 7 else "lsl",
        "high_bits": str(abs(7 - left)),
        "right": "" if is_packed else _text(right),
        "packed_right": str(right) if is_packed else "",
        "packed_left": str(16 - right),
    }


@made_once
def _sums(
    width: int, pairs: int, gates: tuple[GateRescaling, ...], adds: bool
) -> KernelDescription:
    """Compute arguments of the gates of pairs of units, or add to them.

    Returns:
        Parameters: values, weights as `_packed` gives them, factors, arguments (pairs, gates),
        two units in a word.
    """
    x = ir.Buffer("x", (width,), DType.INT8)
    weights = ir.Buffer("weights", (pairs, _words(width)), DType.INT32, alignment=4)
    factors = ir.Buffer("factors", (recurrent.GATES, 2), DType.INT32, alignment=4)
    args = ir.Buffer("args", (pairs, recurrent.GATES), DType.INT32)
    low, high = sums = lane_sums.local_sums(recurrent.GATES)

    def begun(pair: te.Expr, gate: te.Expr) -> ir.Stmt:
        first, raw = (load(weights, pair, gate * 2 + n) for n in range(2))
        return seq(store(low, (gate,), first), store(high, (gate,), (raw - first) >> 8))

    def stored(pair: te.Expr, gate: int) -> ir.Stmt:
        before, factor = load(args, pair, gate), load(factors, gate, 0)
        parts = (
            _int16(te.multiply_by_quantized_multiplier(load(part, gate), factor, gates[gate].shift))
            for part in sums
        )
        if adds:
            old = _lane(before, 0), _lane(before, 1)
            parts = (_int16(part + more) for part, more in zip(parts, old, strict=True))
        first, second = parts
        return store(args, (pair, gate), (first & 0xFFFF) + second * (1 << 16))

    def one(pair: te.Expr) -> ir.Stmt:
        body = seq(
            loop("gate", 0, recurrent.GATES, lambda gate: begun(pair, gate)),
            *_products(x, weights, sums, pair),
            *(stored(pair, gate) for gate in range(recurrent.GATES)),
        )
        return ir.Allocate(low, ir.Allocate(high, body))

    name = "_".join(f"{g.shift + 64}{'c' if g.is_clamped else ''}" for g in gates)
    what = "adds to arguments" if adds else "arguments"
    described = describe(
        f"gates_{width}x{pairs}_{name}{'_add' if adds else ''}",
        (f"Products of {width} values: {what} of the gates of {2 * pairs} units",),
        (x, weights, factors, args), (args,), loop("pair", 0, pairs, one),
        _SUMS, _sums_values(width, pairs, gates, adds), stack_bytes=88,
    )  # fmt: skip
    return reading(described, args) if adds else described


def _products(
    x: ir.Buffer, weights: ir.Buffer, sums: tuple[ir.Buffer, ir.Buffer], pair: te.Expr
) -> Iterator[ir.Stmt]:
    """Yield what adds the products of all values with the weights of a pair of units."""
    (width,), (low, high) = x.shape, sums
    assert isinstance(width, int)
    full, rest = divmod(width, QUAD)

    def value(place: te.ExprLike, quad: te.Expr, byte: int) -> ir.Stmt:
        first = quad * _ROWS + (_ROWS + byte % 2 * recurrent.GATES)

        def multiply(gate: te.Expr, v: te.Expr) -> ir.Stmt:
            word = load(weights, pair, first + gate)
            return lane_sums.split_lane(
                _lane(word, byte // 2),
                lambda a, b: seq(
                    store(low, (gate,), load(low, gate) + v * a),
                    store(high, (gate,), load(high, gate) + v * b),
                ),
            )

        gates = recurrent.GATES
        return let(
            "value", wide(load(x, place)),
            lambda v: loop("gate", 0, gates, lambda gate: multiply(gate, v)),
        )  # fmt: skip

    yield loop(
        "quad", 0, full,
        lambda quad: seq(*(value(quad * QUAD + byte, quad, byte) for byte in range(QUAD))),
    )  # fmt: skip
    last, begin = te.as_expr(full, DType.INT32), max(width - QUAD, 0)
    yield from (value(begin + n, last, n) for n in range(min(width, QUAD) if rest else 0))


def _int16(value: te.Expr) -> te.Expr:
    return te.clamp(value, DType.INT16.min, DType.INT16.max)


def _lane(word: te.Expr, upper: int) -> te.Expr:
    return word >> 16 if upper else ((word & 0xFFFF) ^ 0x8000) - 0x8000


# --- cells ----------------------------------------------------------------------------------------


def _cells_values(units: int, rescaling: CellRescaling) -> dict[str, object]:
    pairs, single = divmod(units, 2)
    return {
        **rescaling.values(), **rescaling.vector_values(units),
        "pairs_bytes": _text(pairs * _PAIR_BYTES), "single": bool(single),
    }  # fmt: skip


@made_once
def _cells(units: int, rescaling: CellRescaling, form: CellForm) -> KernelDescription:
    """Make new cells and hidden states of arguments of gates.

    Returns:
        Parameters: arguments as products make them, lines, cells, hidden states, what is shown.
    """
    buffer = arguments("args", -(-units // 2), form.argument)
    args = te.placeholder(buffer.shape, buffer.dtype, "args", alignment=buffer.alignment)
    lines = te.placeholder((LINES, 2), DType.INT16, "lines", alignment=4)
    old = te.placeholder((units,), DType.INT16, "old")

    def argument(gate: int, unit: te.Expr) -> tuple[te.Expr]:
        place = unit // 2, _ORDER.index(gate)
        if form.argument is DType.INT16:
            of_unit = *place, unit % 2
            return (wide(args[of_unit]),)
        return (_lane(args[place] >> (unit % 2 * 16), 0),)

    step = IntegerStep(
        argument,
        SignedLines(lines), rescaling.params, rescaling.hidden,
    )  # fmt: skip
    cell = te.compute((units,), lambda i: step.cell(old[i], i), "cell", axes=("unit",))
    hidden = te.compute((units,), lambda i: step.hidden(cell[i], i), "hidden", axes=("unit",))
    shown = te.compute((units,), lambda i: hidden[i], "shown", axes=("unit",))
    body = te.create_schedule((cell, hidden, shown)).primfunc(name="cells").body
    tensors = args, lines, cell, hidden, shown
    params, values = tuple(tensor.buffer for tensor in tensors), _cells_values(units, rescaling)
    texts = (*rescaling.values().values(), values["pairs_bytes"])
    of_type = "" if rescaling.hidden.dtype is DType.INT8 else f"_{rescaling.hidden.dtype.value}"
    described = describe(
        f"{form.name}{of_type}_{units}_{'_'.join(map(str, texts))}",
        (f"Cells and hidden states of {units} units",), params, params[2:],
        visitor.substitute(body, {old.buffer: cell.buffer}), form.template, values,
        stack_bytes=form.stack_bytes, needs=form.needs,
    )  # fmt: skip
    return reading(described, cell.buffer)
