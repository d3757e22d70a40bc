"""Sums, products and squared differences in a form that all instruction sets compute.

An element alone is one of them, without a second line: it is rescaled, below zero as it may be; and
so is PRELU, whose constants become slopes.

Each input is on a line, or the second one in a table, or rescaled and rounded as TFLite does; what
the two give is joined, and rescaled as it is stored.  For sums of int8 in general one line of both,
and a shift, is the same as all steps.  What repeats in a loop stands in front of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.kernels.common import made_once, statements
from microtir.operators.activations import definition as activations
from microtir.operators.arithmetic import definition as arithmetic
from microtir.operators.arithmetic import fixed_form, float_formula
from microtir.operators.arithmetic.formula import PRODUCT, finish_of_squares
from microtir.operators.arithmetic.tabled_formula import BITS, sum_table, table_of
from microtir.operators.common import fixed_point
from microtir.operators.common.arithmetic import RAISED, RoundedTwice, long, wide
from microtir.operators.common.linear import rescales_in_float
from microtir.operators.common.multiplier import QuantizedMultiplier, activation_range
from microtir.operators.conversion.definition import Quantize, requantize_params
from microtir.tir import ir
from microtir.tir.ir import Array

WORDS = 6  # slope and offset of each line, the multiplier, what is added behind it
_ENTRIES = 1 << DType.INT8.bits
_LONGEST = (1 << 30) - 1  # that a sum of widened int16 is, or nearly a product
_MOST_ROUNDED = 30  # bits
_SUM_BITS, _CENTRED = 31, 256  # what magnitudes of sums and of centred elements stay below
_PARTS = 9  # of a bit, that offsets are tried at


class Join(Enum):
    """Operation that joins the lines of both inputs, or leaves the first one."""

    NONE = "none"
    SLOPE = "slope"  # of the second input, for what is below zero, else that of the second line
    SUM = "sum"
    PRODUCT = "product"
    SQUARE = "square"  # of the sum


@dataclass(frozen=True, slots=True)
class Form:
    """Computation of two elements; part of the identity of a micro-kernel.

    Attributes:
        join: of the lines.
        is_swapped: whether input 1 is on the first line.
        shifts: of the lines, right.
        shift: of the result, right.
        low: the least result.
        high: the largest.
        is_multiplied: the upper half of twice the join times the multiplier, rounded, is taken.
        is_doubled: the slope holds that factor of two.
        rounds_away: halves of a result below zero are rounded down.
        has_table: what the second input stands for is an entry behind the words.
        dtype: of the output.
        source: the type of the inputs.
        below: the shift of a result below zero, which has a multiplier and a number behind it of
            its own, in place of the second line.
        is_rounded: the second line is the upper half of a product, of the element in the upper
            half of a word, and rounds away from zero as it is shifted.
        is_taken: the second line is subtracted.
    """

    join: Join
    is_swapped: bool
    shifts: tuple[int, int]
    shift: int
    low: int
    high: int
    is_multiplied: bool = True
    is_doubled: bool = False
    rounds_away: bool = False
    has_table: bool = False
    dtype: DType = DType.INT8
    source: DType = DType.INT8
    below: int | None = None
    is_rounded: bool = False
    is_taken: bool = False

    @property
    def sources(self) -> tuple[DType, DType]:
        """Return the types of both inputs as they are read."""
        return self.source, DType.INT32 if self.join is Join.SLOPE else self.source

    @property
    def constants(self) -> int:
        """Return how many numbers it reads beside the elements."""
        return WORDS + (_ENTRIES if self.has_table else 0)

    @property
    def value(self) -> str:
        flags = "".join(
            "ny"[flag]
            for flag in (self.is_multiplied, self.is_doubled, self.rounds_away, self.has_table)
        )
        flags += "r" * self.is_rounded + "t" * self.is_taken
        if self.join is Join.NONE:
            flags += f"{'' if self.below is None else self.below}_{self.source.value}"
        ends = self.low - self.dtype.min, self.high - self.dtype.min
        numbers = (self.is_swapped, *self.shifts, self.shift, *ends)
        return f"{self.join.value}_{flags}_{'_'.join(str(int(n)) for n in numbers)}"

    @property
    def is_long_product(self) -> bool:
        """Return whether twice the product of the least elements is saturated."""
        return self.join is Join.PRODUCT and self.dtype is DType.INT16

    def values(self, repeats: Sequence[bool]) -> Mapping[str, object]:
        """Return what the assembly templates are given; empty text stands for what is not done."""
        first, second = (f"#{bits}" if bits else "" for bits in self.shifts)
        is_long, is_single = self.dtype is DType.INT16, self.join is Join.NONE
        is_straight = self.join is Join.SUM and not (self.is_rounded or self.has_table)
        return {
            "join": self.join.value,
            "is_single": is_single,
            "has_slopes": self.join is Join.SLOPE,
            "output": "r1" if is_single else "r2",
            "words": "r2" if is_single else "r3",
            "is_bent": self.below is not None,
            "below": f"#{self.below}" if self.below else "",
            "width": _width(self.source),
            "width_out": _width(self.dtype),
            "bits": str(self.dtype.bits),
            "bytes": str(self.source.bytes),
            "bytes_out": str(self.dtype.bytes),
            "four": str(4 * self.source.bytes),
            "four_out": str(4 * self.dtype.bytes),
            "is_long": is_long,
            "is_rounded": self.is_rounded,
            "joins": "sub" if self.is_taken else "add",
            "is_once": repeats[self.is_swapped] and not is_single,
            "repeats": repeats[-1] if is_single else repeats[not self.is_swapped],
            "x": "r1" if self.is_swapped else "r0",
            "y": "r0" if self.is_swapped else "r1",
            "is_line": is_straight and not any(self.shifts),
            "has_table": self.has_table,
            "entries": f"#{WORDS * DType.INT32.bytes}",
            "first_shift": first,
            "second_shift": second,
            "shift": f"#{self.shift}" if self.shift else "",
            "saturated": f", asr #{self.shift}" if self.shift else "",
            "low": "" if self.low == self.dtype.min else f"#{self.low}",
            "high": "" if self.high == self.dtype.max else f"#{self.high}",
            "is_multiplied": self.is_multiplied,
            "is_doubled": self.is_doubled,
            "rounds_away": self.rounds_away,
        }

    def statement(
        self,
        inputs: Sequence[te.Expr],
        number: Callable[[te.ExprLike], te.Expr],
        store: Callable[[te.Expr], ir.Stmt],
    ) -> ir.Stmt:
        """Emit what stores the result of the elements of both inputs, given its constants."""
        slope1, offset1, slope2, offset2, multiplier, added = map(number, range(WORDS))
        x, y = map(wide, reversed(inputs) if self.is_swapped else (inputs[0], inputs[-1]))
        first = (x * slope1 + offset1) >> self.shifts[0]
        if self.has_table:
            second = number((y & DType.UINT8.max) + WORDS)
        elif self.is_rounded:
            high = te.cast(DType.INT32, (long(y) * long(slope2) + (1 << 15)) >> 16)
            second = (high + offset2 + (y >> 31)) >> self.shifts[1]
        else:
            second = (y * slope2 + offset2) >> self.shifts[1]

        def stored(value: te.Expr, shift: int = self.shift) -> ir.Stmt:
            clamped = te.clamp(value >> shift, self.low, self.high)
            return store(te.cast(self.dtype, clamped))

        def rescaled(value: te.Expr) -> ir.Stmt:
            half = te.const(1 << 31, DType.INT64)
            high = te.cast(DType.INT32, (long(value) * long(multiplier) + half) >> 32) + added
            if self.below is not None:
                low = te.cast(DType.INT32, (long(value) * long(slope2) + half) >> 32) + offset2
                return stored(te.select(value < 0, low >> self.below, high >> self.shift), 0)
            return stored(high + (value >> 31) if self.rounds_away else high)

        def finished(value: te.Expr) -> ir.Stmt:
            if not self.is_multiplied:
                return stored(value)
            doubled = value if self.is_doubled else value * 2
            if self.is_long_product:
                most = te.const(DType.INT32.max, DType.INT64)
                doubled = te.cast(DType.INT32, te.minimum(long(value) * 2, most))
            return statements.let("scaled", doubled, rescaled)

        if self.join is Join.NONE:
            return finished(first)
        if self.join is Join.SLOPE:
            value = x + offset1
            return stored(value * te.select(value < 0, y, slope2) + offset2)
        if self.join is Join.SQUARE:
            return statements.let("difference", first + second, lambda d: finished(d * d))
        if self.join is Join.PRODUCT:
            return finished(first * second)
        return finished(first - second if self.is_taken else first + second)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A form and its constants: words, and the table, if there is one."""

    form: Form
    words: tuple[int, ...]
    table: Array = field(default_factory=lambda: np.zeros(0, np.int32))

    @property
    def constants(self) -> Array:
        return np.concatenate([np.array(self.words, np.int32), self.table])


_Line = tuple[int, int, int]  # slope, offset, bits


def arithmetic_of(node: Node) -> Arithmetic | None:
    """Return what a node computes of two elements; None where it has no such form."""
    tensors = *node.inputs, node.output
    dtypes = {tensor.dtype for tensor in tensors}
    if len(node.inputs) == 1:
        is_short = dtypes <= {DType.INT8, DType.INT16} and DType.INT16 in dtypes
        return _BUILDERS[type(node.op)](node) if is_short else None
    if dtypes == {DType.INT8}:
        return _BUILDERS[type(node.op)](node)
    if isinstance(node.op, activations.Prelu):
        return None
    if dtypes != {DType.INT16} or rescales_in_float(node):
        return None
    return None if any(tensor.type.quant.zero_point for tensor in tensors) else _long(node)


def _width(dtype: DType) -> str:
    return "h" if dtype is DType.INT16 else "b"


def _long(node: Node) -> Arithmetic | None:
    """Return ADD, SUB or MUL of int16, whose zero points are 0."""
    if isinstance(node.op, arithmetic.SquaredDifference):
        return None
    op = node.attributes(arithmetic.BinaryArithmetic)
    types = [tensor.type for tensor in (*node.inputs, node.output)]
    ends = activation_range(op.activation, types[2])
    if not _are_loaded(ends, DType.INT16):
        return None
    if isinstance(op, arithmetic.Mul):
        factor = arithmetic.mul_params(op, *types).multiplier
        finish = RoundedTwice.of(factor, _LONGEST, 0)
        if finish is None or factor.shift > 0 or not _saturates(finish, ends):
            return None
        swaps, line = _is_swapped(node), (1, 0, 0)
        lane = _rescaled(Join.PRODUCT, swaps, (line, line), finish, ends)
        return _of_int16(lane, replace(lane.form, is_doubled=False))
    assert isinstance(op, arithmetic.Add | arithmetic.Sub)
    params = arithmetic.add_params(op, *types)
    finish = RoundedTwice.of(params.output, _LONGEST, 0)
    return None if finish is None else _long_sum(node, params, finish)


def _are_loaded(ends: tuple[int, int], dtype: DType) -> bool:
    """Return whether the templates have room for what results are clamped to."""
    return dtype is DType.INT8 or (ends[0] in (dtype.min, 0) and ends[1] > 0)


def _saturates(finish: RoundedTwice, ends: tuple[int, int]) -> bool:
    """Return whether twice the largest product of int16 may be a number less."""
    shift, multiplier = -finish.factor.shift, finish.factor.multiplier
    rounded = (DType.INT32.max * multiplier + (1 << 31)) >> 32
    exact = fixed_point.multiply_by_quantized_multiplier(1 << 30, multiplier, -shift)
    return min((rounded + ((1 << shift) >> 1)) >> shift, ends[1]) == min(int(exact), ends[1])


def _long_sum(node: Node, params: arithmetic.AddParams, finish: RoundedTwice) -> Arithmetic | None:
    """Return ADD or SUB of int16: the input of the larger scale is shifted, the other one rounded.

    The other one is shifted, too, if its scale is a power of two times smaller.
    """
    signs = 1, -1 if isinstance(node.op, arithmetic.Sub) else 1
    factors = params.input1, params.input2
    slopes = [_power_of(factor) for factor in factors]
    ends = params.activation_min, params.activation_max
    position = next((n for n in (1, 0) if slopes[n] == 0), None)
    if position is None:
        swaps = _is_swapped(node)
        first, second = (int(swaps), 1 - swaps)
        lines = tuple((signs[n] * slopes[n], 0, 0) for n in (first, second))
        lane = _rescaled(Join.SUM, swaps, (lines[0], lines[1]), finish, ends)
        return _of_int16(lane, replace(lane.form, rounds_away=lane.form.shift > 0))
    bits = -factors[position].shift
    if bits > _MOST_ROUNDED or not slopes[1 - position]:
        return None
    own = signs[1 - position] * slopes[1 - position], 0, 0
    rounded = factors[position].multiplier, (1 << bits) >> 1, bits
    lane = _rescaled(Join.SUM, position == 0, (own, rounded), finish, ends)
    rounds_away, is_taken = lane.form.shift > 0, signs[position] < 0
    form = replace(lane.form, rounds_away=rounds_away, is_rounded=True, is_taken=is_taken)
    return _of_int16(lane, form)


def _of_int16(lane: Arithmetic, form: Form) -> Arithmetic:
    return replace(lane, form=replace(form, dtype=DType.INT16, source=DType.INT16))


def _quantize(node: Node) -> Arithmetic | None:
    """Return QUANTIZE between int8 and int16."""
    if rescales_in_float(node):
        return None
    params = requantize_params(node.inputs[0].type, node.output.type)
    ends = params.minimum, params.maximum
    return _alone(node, params.input_zero_point, params.output_zero_point, params.multiplier, ends)


def _relu(node: Node) -> Arithmetic | None:
    op = node.attributes(activations.Relu)
    params = activations.relu_params(op, node.inputs[0].type, node.output.type)
    ends = params.activation_min, params.activation_max
    zeros = params.input_zero_point, params.output_zero_point
    return None if params.multiplier is None else _alone(node, *zeros, params.multiplier, ends)


def _leaky_relu(node: Node) -> Arithmetic | None:
    op = node.attributes(activations.LeakyRelu)
    params = activations.leaky_relu_params(op, node.inputs[0].type, node.output.type)
    ends, slope, identity = (params.minimum, params.maximum), params.alpha, params.identity
    if identity == (1 << 30, 1):  # of equal scales: what is nearly one gives the same
        identity = QuantizedMultiplier(DType.INT32.max, 0)
    lane = _alone(node, params.input_zero_point, params.output_zero_point, identity, ends)
    if lane is None or slope.multiplier < 0 or max(slope.shift, identity.shift) > 0:
        return None
    below = -slope.shift
    # Halves go away from zero: one less, for what is rescaled so is below it.
    added = (params.output_zero_point << below) + ((1 << below) >> 1) - (below > 0)
    if below > _MOST_ROUNDED - 2:
        return None
    words = *lane.words[:2], slope.multiplier, added, *lane.words[4:]
    return Arithmetic(replace(lane.form, below=below, rounds_away=False), words)


def slopes_of(node: Node) -> Array | None:
    """Return the slopes that the constants of a PRELU are, in words; None of other operators."""
    if not isinstance(node.op, activations.Prelu):
        return None
    bend, alpha = _bend(node), node.inputs[1].values
    assert bend is not None
    values, places = np.unique(alpha, return_inverse=True)
    return np.array([bend.slopes[int(v)] for v in values], np.int32)[places].reshape(alpha.shape)


@dataclass(frozen=True, slots=True)
class _Bend:
    """PRELU as (slope * x + offset) >> bits, of what is above zero, and by constant below it."""

    bits: int
    offset: int
    above: int
    slopes: Mapping[int, int]


def _prelu(node: Node) -> Arithmetic | None:
    x, alpha = node.inputs
    bend = _bend(node) if alpha.is_constant and x.shape == node.output.shape else None
    if bend is None:
        return None
    ends = DType.INT8.min, DType.INT8.max
    lane = Form(Join.SLOPE, False, (0, 0), bend.bits, *ends, is_multiplied=False)
    return Arithmetic(lane, (0, -x.type.quant.zero_point, bend.above, bend.offset, 0, 0))


@made_once.of_node
def _bend(node: Node) -> _Bend | None:
    """Return slopes that give TFLite's results of every element; None if there are none."""
    alpha = node.inputs[1].values
    op, types = node.attributes(activations.Prelu), [x.type for x in (*node.inputs, node.output)]
    params = activations.prelu_params(op, *types)
    stored = {int(v): int(v) - params.alpha_zero_point for v in np.unique(alpha)}
    steepest = max(
        _real(params.identity), *(abs(a) * _real(params.product) for a in stored.values())
    )
    bits = _SUM_BITS - math.frexp(_CENTRED * steepest + _CENTRED)[1]
    if not 0 < bits < _SUM_BITS:
        return None
    values, zero = fixed_form.STORED - params.input_zero_point, params.output_zero_point
    below, above = values[values < 0], values[values > 0]
    products = np.outer(list(stored.values()), below)
    # What is rounded twice is rounded up from a bit before the half on.
    for part in range(_PARTS):
        moved = (part << max(bits + params.product.shift, 0)) // (_PARTS - 1)
        offset = ((2 * zero + 1) << bits - 1) - moved
        first = _slopes(above, above[np.newaxis], params.identity, (zero, bits, offset))
        slopes = _slopes(below, products, params.product, (zero, bits, offset))
        if first is not None and slopes is not None:
            return _Bend(bits, offset, first[0], dict(zip(stored, slopes, strict=True)))
    return None


def _real(factor: QuantizedMultiplier) -> float:
    return math.ldexp(factor.multiplier, factor.shift - 31)


def _slopes(
    values: Array, products: Array, factor: QuantizedMultiplier, line: tuple[int, int, int]
) -> list[int] | None:
    """Return slopes by which values give the results of rows of products; None: some have none.

    A product of a slope with any of the values, and the offset, fit int32.

    Args:
        values: of one sign.
        products: a row for each slope.
        factor: of them.
        line: what is added to results, the bits of slopes, and the offset.
    """
    zero, bits, offset = line
    scaled = fixed_point.multiply_by_quantized_multiplier(products, *factor) + zero
    results, far = np.clip(scaled, DType.INT8.min, DType.INT8.max).astype(np.int64), 1 << 40
    # The least product that gives a result, and the largest; an end stands for all beyond it.
    least = np.where(results > DType.INT8.min, (results << bits) - offset, -far)
    most = np.where(results < DType.INT8.max, (results + 1 << bits) - offset - 1, far)
    sign = -1 if (values < 0).any() else 1
    values = values * sign
    low = (-(-least // values)).max(axis=1, initial=-far)
    high = (most // values).min(axis=1, initial=far)
    # Where all results are an end, nothing else bounds a slope.
    steepest = (DType.INT32.max - abs(offset)) // int(values.max(initial=1))
    chosen = np.clip((low + high) // 2, -steepest, steepest)
    return (sign * chosen).tolist() if ((low <= chosen) & (chosen <= high)).all() else None


def _alone(
    node: Node, zero: int, result_zero: int, factor: QuantizedMultiplier, ends: tuple[int, int]
) -> Arithmetic | None:
    """Return what rescales an element."""
    source, dtype = node.inputs[0].dtype, node.output.dtype
    finish = RoundedTwice.of(factor, 1 << source.bits, result_zero)
    if finish is None or not _are_loaded(ends, dtype):
        return None
    line = finish.scale, -zero * finish.scale, 0
    lane = _rescaled(Join.NONE, False, (line, (0, 0, 0)), finish, ends)
    return replace(lane, form=replace(
        lane.form, is_doubled=True, rounds_away=lane.form.shift > 0, dtype=dtype, source=source,
    ))  # fmt: skip


def _power_of(factor: QuantizedMultiplier) -> int:
    """Return how many times itself an operand becomes; 0 if it is rounded."""
    bits = arithmetic.ADD_LEFT_SHIFTS[DType.INT16] - 1 + factor.shift
    return 1 << bits if factor.multiplier == 1 << 30 and bits >= 0 else 0


def _is_swapped(node: Node) -> bool:
    first, second = (tensor.type.elements for tensor in node.inputs)
    return first < second


def _sum(node: Node) -> Arithmetic | None:
    """Return ADD or SUB, if integers of 32 bits give all of its results."""
    op, output = node.attributes(arithmetic.Add, arithmetic.Sub), node.output.type
    if rescales_in_float(node):
        form, ends = float_formula.form_of(node), float_formula.ends_of(op, output)
    else:
        params = arithmetic.add_params(op, node.inputs[0].type, node.inputs[1].type, output)
        ends = params.activation_min, params.activation_max
        form = fixed_form.sum_form(node)
    if form is None or form.is_wide:
        return _tabled_sum(node, ends)
    zeros = [tensor.type.quant.zero_point for tensor in node.inputs]
    offset = form.offset - form.first * zeros[0] - form.second * zeros[1]
    stored = DType.INT8.min, DType.INT8.max
    corners = [form.first * x + form.second * y + offset for x in stored for y in stored]
    if not _fit(corners):
        return _tabled_sum(node, ends)
    swaps = _is_swapped(node)
    slopes = (form.second, form.first) if swaps else (form.first, form.second)
    lane = Form(Join.SUM, swaps, (0, 0), form.bits, *ends, is_multiplied=False)
    return Arithmetic(lane, (slopes[0], offset, slopes[1], 0, 0, 0))


def _fit(sums: Sequence[int]) -> bool:
    return min(sums) >= DType.INT32.min and max(sums) <= DType.INT32.max


def _tabled_sum(node: Node, ends: tuple[int, int]) -> Arithmetic | None:
    """Return ADD or SUB, if what one operand stands for is in a table."""
    tabled = None if rescales_in_float(node) else sum_table(node)
    if tabled is None:
        return None
    entries = tabled.entries - (RAISED << BITS)
    products = [tabled.factor * end for end in (DType.INT8.min, DType.INT8.max)]
    if not _fit([p + int(e) for p in products for e in (entries.min(), entries.max())]):
        return None
    lane = Form(
        Join.SUM, tabled.position == 0, (0, 0), BITS, *ends, is_multiplied=False, has_table=True
    )
    return Arithmetic(lane, (tabled.factor, 0, 0, 0, 0, 0), entries)


def _product(node: Node) -> Arithmetic | None:
    """Return MUL; the first line holds what the product is widened by."""
    op = node.attributes(arithmetic.Mul)
    if rescales_in_float(node):
        return None
    params = arithmetic.mul_params(op, node.inputs[0].type, node.inputs[1].type, node.output.type)
    finish = RoundedTwice.of(params.multiplier, PRODUCT, params.output_zero_point)
    if finish is None:
        return None
    zeros, swaps = (params.input1_zero_point, params.input2_zero_point), _is_swapped(node)
    first, second = reversed(zeros) if swaps else zeros
    lines = ((finish.scale, -first * finish.scale, 0), (1, -second, 0))
    ends = params.activation_min, params.activation_max
    return _rescaled(Join.PRODUCT, swaps, lines, finish, ends)


def _square(node: Node) -> Arithmetic | None:
    """Return SQUARED_DIFFERENCE, if both operands are lines."""
    first, second = node.inputs
    params = arithmetic.difference_params(first.type, second.type, node.output.type)
    finish = finish_of_squares(params)
    lines = (fixed_form.operand_line(params.left_shift, *params.operand(n)) for n in range(2))
    some = [line for line in lines if line is not None]
    ends = params.activation_min, params.activation_max
    if finish is None or params.output.shift > 0:
        return None
    tabled = table_of(node)
    if tabled is not None:
        zero, _ = params.operand(1 - tabled.position)  # whose factor is one half
        factor = 1 << (params.left_shift - 1)
        own, none = (factor, -factor * zero, 0), (0, 0, 0)
        lane = _rescaled(Join.SQUARE, tabled.position == 0, (own, none), finish, ends)
        return Arithmetic(replace(lane.form, has_table=True), lane.words, -tabled.entries)
    if len(some) < 2:
        return None
    swaps = _is_swapped(node)
    added, (slope, offset, bits) = reversed(some) if swaps else some
    # Less a number that is rounded down is its negative, rounded up.
    taken = -slope, (1 << bits) - 1 - offset, bits
    return _rescaled(Join.SQUARE, swaps, (added, taken), finish, ends)


def _rescaled(
    join: Join, swaps: bool, lines: tuple[_Line, _Line], finish: RoundedTwice, ends: tuple[int, int]
) -> Arithmetic:
    (slope1, offset1, bits1), (slope2, offset2, bits2) = lines
    shift, is_product = max(-finish.factor.shift, 0), join is Join.PRODUCT
    form = Form(
        join,
        swaps,
        (bits1, bits2),
        shift,
        *ends,
        is_doubled=is_product,
        rounds_away=is_product and shift > 0,
    )
    added = (finish.zero_point << shift) + ((1 << shift) >> 1)
    words = slope1, offset1, slope2, offset2, finish.factor.multiplier, added
    return Arithmetic(form, words)


_BUILDERS: Mapping[type[Operator], Callable[[Node], Arithmetic | None]] = MappingProxyType(
    {
        arithmetic.Add: _sum,
        arithmetic.Sub: _sum,
        arithmetic.Mul: _product,
        arithmetic.SquaredDifference: _square,
        Quantize: _quantize,
        activations.Relu: _relu,
        activations.LeakyRelu: _leaky_relu,
        activations.Prelu: _prelu,
    }
)

OPERATORS = tuple(_BUILDERS)
