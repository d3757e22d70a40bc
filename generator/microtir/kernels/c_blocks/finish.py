"""Finishing steps: they turn the sum of a channel into its output, for int8, int16 and float32.

int8 shares the exact sequence of `dsp.requantise`, shifted by 128: values are clamped to [0, 255],
whose ends are immediates of every CPU (one USAT on Arm), and 128 is subtracted in the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import packing, weights
from microtir.kernels.common.long_requantise import LongRescaling, long_constants
from microtir.kernels.common.requantise import BIAS, MULTIPLIER, ROUNDING, SHIFT, WORDS, Rescaling
from microtir.operators.common import arithmetic, attributes, fixed_point, linear, weighted


def _offset(element: DType) -> int:
    """Return what is added to outputs before they are clamped."""
    return 128 if element is DType.INT8 else 0


Table = npt.NDArray[np.generic]


class Finish(Protocol):
    """The step that turns sums of a layer into outputs; part of the identity of its kernels."""

    @property
    def name(self) -> str:
        """Distinguish kernels."""

    @property
    def element(self) -> DType:
        """Return type of inputs and outputs."""

    @property
    def weight(self) -> DType:
        """Return type of weights."""

    @property
    def sum(self) -> DType:
        """Return type of the sums."""

    @property
    def constant(self) -> DType:
        """Return type of the table of constants."""

    @property
    def words(self) -> int:
        """Return columns of the table of constants, whose rows are channels; 0 if it needs none."""

    @property
    def instructions(self) -> int:
        """Return the instructions of one output."""

    @property
    def per_product(self) -> int:
        """Return the instructions of a product that is added to a sum."""

    def product(self, value: te.Expr, weight: te.Expr) -> te.Expr:
        """Return what is added to a sum."""

    def start(self, table: te.Tensor, channel: te.Expr) -> te.Expr:
        """Return what the sums of a channel begin with."""

    def output(self, table: te.Tensor, channel: te.Expr, total: te.Expr) -> te.Expr:
        """Return what a sum of the channel is stored as."""


@dataclass(frozen=True, slots=True)
class Requantise:
    """Integers whose sums tflite-micro holds in 32 bits: bias, factor, zero point, clamp.

    Where clamps take no branch (`is_straight`), the outputs of a block are one run of instructions,
    which GCC for RISC-V mixes until it has no registers left, for the sums of the next turn either.
    Then each sum is read behind the output before it.
    """

    rescaling: Rescaling
    is_straight: bool = False
    element: DType = DType.INT8

    weight = DType.INT8
    sum = DType.INT32
    constant = DType.INT32
    words = WORDS
    per_product = 1

    @property
    def name(self) -> str:
        r, offset = self.rescaling, _offset(self.element)
        shift = "" if r.shift is None else f"_shift{r.shift}"
        low, high = r.low - offset, r.high - offset
        is_free = (low, high) == (self.element.min, self.element.max)
        clamp = "" if is_free else f"_{low}_{high}".replace("-", "m")
        straight, wide = "_straight" * self.is_straight, "_s16" * (self.element is DType.INT16)
        return f"{'linear' if r.corrects_ties else 'relu'}{shift}{clamp}{straight}{wide}"

    @property
    def instructions(self) -> int:
        return 10 + 2 * self.rescaling.corrects_ties - 2 * self.is_straight

    def product(self, value: te.Expr, weight: te.Expr) -> te.Expr:
        return value * weight

    def start(self, table: te.Tensor, channel: te.Expr) -> te.Expr:
        return te.as_expr(0, self.sum)

    def output(self, table: te.Tensor, channel: te.Expr, total: te.Expr) -> te.Expr:
        # Read before the first output is written: what int8_t points to may be the table.
        names = ("bias", "factor", "rounding", "shift")
        words = [te.bind(name, table[channel, n]) for n, name in enumerate(names)]
        bias, factor, rounding = words[:3]
        if self.is_straight:
            total = te.compiler_barrier(total)
        doubled = te.cast(DType.INT64, total * 2 + bias)
        product = te.bind("product", doubled * te.cast(DType.INT64, factor))
        return self.stored(te.bind("high", upper_word(product)), rounding, words[3])

    def stored(self, high: te.Expr, rounding: te.Expr, shift: te.Expr) -> te.Expr:
        """Return what the upper word of a product is stored as."""
        r = self.rescaling
        by = shift if r.shift is None else te.as_expr(r.shift, DType.INT32)
        if r.corrects_ties:
            high = high + (high >> 31)
        value = te.clamp((high + rounding) >> by, r.low, r.high)
        return te.cast(self.element, value - _offset(self.element))


@dataclass(frozen=True, slots=True)
class RequantiseLong:
    """int16 whose sums tflite-micro holds in 64 bits, and which fit 32: factor, clamp."""

    rescaling: LongRescaling

    element = DType.INT16
    weight = DType.INT8
    sum = DType.INT32
    constant = DType.INT32
    words = WORDS
    per_product = 1
    instructions = 9

    @property
    def name(self) -> str:
        return self.rescaling.name

    def product(self, value: te.Expr, weight: te.Expr) -> te.Expr:
        return value * weight

    def start(self, table: te.Tensor, channel: te.Expr) -> te.Expr:
        return table[channel, BIAS]

    def output(self, table: te.Tensor, channel: te.Expr, total: te.Expr) -> te.Expr:
        # Read before the first output is written: what int16_t points to may be the table.
        names = ((MULTIPLIER, "factor"), (ROUNDING, "rounding"), (SHIFT, "shift"))
        factor, rounding, shift = (te.bind(name, table[channel, n]) for n, name in names)
        return self.rescaling.apply(total, factor, rounding, shift)


def upper_word(product: te.Expr) -> te.Expr:
    """Return upper word of a product, rounded.

    A sum of words needs no carry, as one of 64 bits does.

    CPUs without flags have to compare for a carry; Arm's adds the shifted word in one instruction.
    """
    next_bit = te.cast(DType.INT32, (product >> 31) & 1)
    return te.cast(DType.INT32, product >> 32) + next_bit


def finish_of(
    node: Node, *, no_fp_contract: bool = False, is_straight: bool = False
) -> tuple[Finish, Table | None] | None:
    """Return what a layer does with its sums, and the table that is read for it."""
    if not node.inputs[0].dtype.is_float:
        return _requantise(node, is_straight=is_straight)
    table = node.inputs[2].values.reshape(-1, 1) if len(node.inputs) > 2 else None
    activation = node.attributes(linear.WeightedOperator).activation
    return Activate(table is not None, activation, no_fp_contract), table


def _requantise(node: Node, *, is_straight: bool) -> tuple[Finish, Table] | None:
    """Return the finish of an integer layer and its table, (channels, 4); None if it has none.

    Where it `is_straight`, clamps take no branch.
    """
    params = linear.params_of(node)
    if linear.has_long_sums(node) and params.factors:
        return _in_float(node, params)
    if linear.has_long_sums(node):
        words = long_constants(params, linear.bias_of(node))
        return None if words is None else (RequantiseLong(LongRescaling.of(params)), words)
    element = node.output.dtype
    offset = _offset(element)
    raised = replace(
        params,
        output_zero_point=params.output_zero_point + offset,
        activation_min=params.activation_min + offset,
        activation_max=params.activation_max + offset,
    )
    factors = packing.requantised(node, raised)
    if params.factors and (factors is None or factors.rescaling.in_float):
        return _in_float(node, params)
    if factors is None:
        return None
    return Requantise(factors.rescaling, is_straight, element), factors.constants


@dataclass(frozen=True, slots=True)
class RequantiseInFloat:
    """Integers whose sums become floats, are multiplied, and rounded: factor, bias, clamp.

    The bias of int16 has more bits than a float32: it is the sum of two.
    """

    limits: weighted.StoredRange
    element: DType = DType.INT8

    weight = DType.INT8
    sum = DType.INT32
    constant = DType.FLOAT32
    per_product = 1
    instructions = 14

    @property
    def words(self) -> int:
        return 2 + (self.element is DType.INT16)

    @property
    def name(self) -> str:
        ends = self.limits.zero_point, self.limits.low, self.limits.high
        wide = "_s16" * (self.element is DType.INT16)
        return "_".join(("float", *map(str, ends))).replace("-", "m") + wide

    def product(self, value: te.Expr, weight: te.Expr) -> te.Expr:
        return value * weight

    def start(self, table: te.Tensor, channel: te.Expr) -> te.Expr:
        start = te.cast(self.sum, table[channel, 0])
        if self.element is DType.INT16:
            start = start + te.cast(self.sum, table[channel, 2])
        return start

    def output(self, table: te.Tensor, channel: te.Expr, total: te.Expr) -> te.Expr:
        # Read before the first output is written: what int8_t points to may be the table.
        factor = te.bind("factor", table[channel, 1])
        return weighted.stored_in_float(total, factor, self.limits, self.element)


_LARGEST_EXACT = 1 << 24  # of the integers that a float32 holds without gaps
_LOWER = (1 << 12) - 1  # what a second float32 has of a bias


def _in_float(node: Node, params: linear.LinearParams) -> tuple[Finish, Table] | None:
    """Return the finish of a layer that rescales in float32; None if a bias is no float32.

    None, too, for one that rescales in double.
    """
    if params.in_double:
        return None
    bias = weights.folded_bias(weights.matrix_of(node).astype(np.int64), node)
    element = node.output.dtype
    is_long = element is DType.INT16
    if np.abs(bias).max(initial=0) > (fixed_point.INT32_MAX if is_long else _LARGEST_EXACT):
        return None
    factors = params.factors * (len(bias) // len(params.factors))
    columns = [bias & ~_LOWER, factors, bias & _LOWER] if is_long else [bias, factors]
    table = np.stack([np.array(column, np.float32) for column in columns], axis=1)
    return RequantiseInFloat(weighted.StoredRange.of(params), element), table


@dataclass(frozen=True, slots=True)
class Activate:
    """float32: bias if there is one, activation.

    Where products and sums are kept apart (`no_fp_contract`), each is an instruction: on a
    Cortex-M4 two cycles, where one that does both takes three.
    """

    has_bias: bool
    activation: attributes.Activation
    no_fp_contract: bool = False

    element = DType.FLOAT32
    weight = DType.FLOAT32
    sum = DType.FLOAT32
    constant = DType.FLOAT32

    @property
    def words(self) -> int:
        return int(self.has_bias)

    @property
    def name(self) -> str:
        contract = "_apart" * self.no_fp_contract
        return f"float{contract}{'_bias' * self.has_bias}_{self.activation.value}"

    @property
    def instructions(self) -> int:
        return 2 + 4 * (self.activation is not attributes.Activation.NONE)

    @property
    def per_product(self) -> int:
        return 1 + self.no_fp_contract

    def product(self, value: te.Expr, weight: te.Expr) -> te.Expr:
        return te.no_fp_contract(value * weight) if self.no_fp_contract else value * weight

    def start(self, table: te.Tensor, channel: te.Expr) -> te.Expr:
        return table[channel, 0] if self.has_bias else te.as_expr(0.0, self.sum)

    def output(self, table: te.Tensor, channel: te.Expr, total: te.Expr) -> te.Expr:
        return arithmetic.activate(total, self.activation)


@dataclass(frozen=True, slots=True)
class RawSums:
    """Sums as they are, for whoever makes outputs of them.

    Products and sums of floats may be kept apart (`no_fp_contract`), as in `Activate`.
    """

    element: DType
    weight: DType
    no_fp_contract: bool = False

    words = 0
    instructions = 1

    @property
    def constant(self) -> DType:
        return self.sum

    @property
    def sum(self) -> DType:
        return self.element if self.element.is_float else DType.INT32

    @property
    def name(self) -> str:
        weight = "" if self.weight is self.element else f"_{self.weight.value}"
        return f"sums_{self.element.value}{weight}{'_apart' * self.no_fp_contract}"

    @property
    def per_product(self) -> int:
        is_widened = self.element.is_float and not self.weight.is_float
        return 1 + self.no_fp_contract + 2 * is_widened

    def product(self, value: te.Expr, weight: te.Expr) -> te.Expr:
        return te.no_fp_contract(value * weight) if self.no_fp_contract else value * weight

    def start(self, table: te.Tensor, channel: te.Expr) -> te.Expr:
        return te.as_expr(0.0 if self.element.is_float else 0, self.sum)

    def output(self, table: te.Tensor, channel: te.Expr, total: te.Expr) -> te.Expr:
        return total
