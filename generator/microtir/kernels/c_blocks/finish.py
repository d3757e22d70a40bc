"""What turns the sum of a channel into its output, for int8 and for float32.

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
from microtir.kernels.common.packing import requantised
from microtir.kernels.common.requantise import WORDS, Rescaling
from microtir.operators.common.arithmetic import activate
from microtir.operators.common.attributes import Activation
from microtir.operators.common.linear import LinearParams

_OFFSET = 128

Table = npt.NDArray[np.generic]


class Finish(Protocol):
    """How sums of a layer become outputs; part of the identity of its kernels."""

    @property
    def name(self) -> str:
        """Distinguish kernels."""

    @property
    def element(self) -> DType:
        """Return type of inputs, weights and outputs."""

    @property
    def sum(self) -> DType:
        """Return type of the sums."""

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
    """int8: bias, factor, zero point, clamp.

    Where clamps take no branch (`is_straight`), the outputs of a block are one run of instructions,
    which GCC for RISC-V mixes until it has no registers left, for the sums of the next turn either.
    Then each sum is read behind the output before it.
    """

    rescaling: Rescaling
    is_straight: bool = False

    element = DType.INT8
    sum = DType.INT32
    words = WORDS
    per_product = 1

    @property
    def name(self) -> str:
        r = self.rescaling
        shift = "" if r.shift is None else f"_shift{r.shift}"
        clamp = "" if (r.low, r.high) == (0, 255) else f"_{r.low - _OFFSET}_{r.high - _OFFSET}"
        clamp = clamp.replace("-", "m")
        straight = "_straight" * self.is_straight
        return f"{'linear' if r.corrects_ties else 'relu'}{shift}{clamp}{straight}"

    @property
    def instructions(self) -> int:
        return 10 + 2 * self.rescaling.corrects_ties - 2 * self.is_straight

    def product(self, value: te.Expr, weight: te.Expr) -> te.Expr:
        return value * weight

    def start(self, table: te.Tensor, channel: te.Expr) -> te.Expr:
        return te.as_expr(0, self.sum)

    def output(self, table: te.Tensor, channel: te.Expr, total: te.Expr) -> te.Expr:
        r = self.rescaling
        # Read before the first output is written: what int8_t points to may be the table.
        names = ("bias", "factor", "rounding", "shift")
        words = [te.bind(name, table[channel, n]) for n, name in enumerate(names)]
        bias, factor, rounding = words[:3]
        if self.is_straight:
            total = te.compiler_barrier(total)
        shift = words[3] if r.shift is None else te.as_expr(r.shift, DType.INT32)
        doubled = te.cast(DType.INT64, total * 2 + bias)
        product = te.bind("product", doubled * te.cast(DType.INT64, factor))
        high = te.bind("high", _upper_word(product))
        if r.corrects_ties:
            high = high + (high >> 31)
        value = te.clamp((high + rounding) >> shift, r.low, r.high)
        return te.cast(DType.INT8, value - _OFFSET)


def _upper_word(product: te.Expr) -> te.Expr:
    """Return upper word of a product, rounded.

    A sum of words needs no carry, as one of 64 bits does.

    CPUs without flags have to compare for a carry; Arm's adds the shifted word in one instruction.
    """
    next_bit = te.cast(DType.INT32, (product >> 31) & 1)
    return te.cast(DType.INT32, product >> 32) + next_bit


def requantise(
    node: Node,
    params: LinearParams,
    matrix: npt.NDArray[np.int8],
    *,
    is_straight: bool = False,
) -> tuple[Requantise, Table] | None:
    """Return finish of an int8 layer and its table, (channels, 4); None if a channel does not fit.

    Args:
        node: with a bias as third input, or without.
        params: of the layer.
        matrix: its weights, (channels, K) in any order of K.
        is_straight: clamps take no branch.
    """
    raised = replace(
        params,
        output_zero_point=params.output_zero_point + _OFFSET,
        activation_min=params.activation_min + _OFFSET,
        activation_max=params.activation_max + _OFFSET,
    )
    made = requantised(matrix, node, raised)
    return None if made is None else (Requantise(made.rescaling, is_straight), made.constants)


@dataclass(frozen=True, slots=True)
class Activate:
    """float32: bias if there is one, activation.

    Where products and sums are `apart`, each is an instruction: on a Cortex-M4 two cycles, where
    one that does both takes three.
    """

    has_bias: bool
    activation: Activation
    apart: bool = False

    element = DType.FLOAT32
    sum = DType.FLOAT32

    @property
    def words(self) -> int:
        return int(self.has_bias)

    @property
    def name(self) -> str:
        apart = "_apart" * self.apart
        return f"float{apart}{'_bias' * self.has_bias}_{self.activation.value}"

    @property
    def instructions(self) -> int:
        return 2 + 4 * (self.activation is not Activation.NONE)

    @property
    def per_product(self) -> int:
        return 1 + self.apart

    def product(self, value: te.Expr, weight: te.Expr) -> te.Expr:
        return te.no_fp_contract(value * weight) if self.apart else value * weight

    def start(self, table: te.Tensor, channel: te.Expr) -> te.Expr:
        return table[channel, 0] if self.has_bias else te.as_expr(0.0, self.sum)

    def output(self, table: te.Tensor, channel: te.Expr, total: te.Expr) -> te.Expr:
        return activate(total, self.activation)
