"""Weights and constants of linear layers, packed in the order that the vector kernels read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.graph.ir import Array, Node
from microtir.kernels.arm_dsp.patch_sums import shared_part
from microtir.kernels.arm_mve import requantise
from microtir.kernels.common import finish_s16, made_once, packing, refusals
from microtir.kernels.common.weights import folded_bias, largest_sums, matrix_of
from microtir.operators.common.linear import LinearParams, bias_of, params_of
from microtir.tir import ir

Of = TypeVar("Of", np.int8, np.int64)

BYTES = 16  # int8 values of a vector


@dataclass(frozen=True, slots=True, eq=False)
class PackedLinear:
    """Weights (groups of 4 channels, steps, 4, values) int8 and constants (groups, words, 4) int32.

    A step has the values of a vector: 16, or 8 of int16.  Weights are meant to be `less` less.
    """

    weights: ir.Buffer
    constants: ir.Buffer
    rescaling: requantise.Form
    less: int


def lanes_of(dtype: DType) -> int:
    """Return how many values of a type a vector holds."""
    return BYTES // dtype.bytes


def steps_of(values: int, lanes: int = BYTES) -> int:
    """Return how many vectors a sum of so many products takes."""
    return -(-values // lanes)


def channel_constants(matrix: Array, node: Node, params: LinearParams) -> requantise.Ints | None:
    """Return constants of the channels of `matrix` (channels, K); None if they do not fit."""
    wide = matrix.astype(np.int64)
    return requantise.constants_of(params, folded_bias(wide, node), largest_sums(wide))


class LinearLayers:
    """Layers of one operator as products of matrices; how sums are rescaled is found once a node.

    Args:
        groups: gives how many groups its channels are in, each of which begins a vector.
        wide: take sums of 64 bits.
    """

    def __init__(self, groups: Callable[[Node], int] = lambda _node: 1, *, wide: bool) -> None:
        self._groups, self._wide = groups, wide
        self.find = made_once.of_node(self._find)

    def _find(self, node: Node) -> requantise.Form | None:
        """Return how a node's sums are rescaled; None if its factors do not fit."""
        constants, form = factors_of(node, wide=self._wide)
        fits = constants is not None and shared(matrix_of(node)) is not None
        return form if fits else None

    def form(self, node: Node) -> requantise.Form:
        """Return the same of a node whose factors fit."""
        own_form = self.find(node)
        assert own_form is not None, "reject() was asked"
        return own_form

    def less(self, node: Node) -> int:
        """Return what is taken from each stored weight of a node: 0 where it is int8."""
        return -refusals.asked(shared(matrix_of(node)))

    def packed_bytes(self, node: Node) -> int:
        packed = self.pack(node)
        return packing.bytes_of(packed.weights, packed.constants)

    def pack(self, node: Node) -> PackedLinear:
        """Pack a node whose factors fit."""
        (constants, rescaling), groups = factors_of(node, wide=self._wide), self._groups(node)
        less = self.less(node)
        stored = (matrix_of(node) + less).astype(np.int8)
        matrix, words = _apart(stored, groups), _apart(refusals.asked(constants), groups)
        return PackedLinear(
            packing.constant("weights", arranged(matrix, lanes_of(rescaling.element))),
            packing.constant("constants", requantise.by_lanes(words)),
            rescaling,
            less,
        )


def shared(matrix: Array) -> int | None:
    """Return what int8 is left of without; None if there is no such number."""
    return shared_part(matrix) if matrix.dtype == np.int16 else 0


def _apart(rows: npt.NDArray[Of], groups: int) -> npt.NDArray[Of]:
    """Return rows of channels with zeros behind each group of them, up to whole vectors."""
    more = -(len(rows) // groups) % requantise.LANES if groups > 1 else 0
    by_group = rows.reshape(groups, -1, rows.shape[1])
    return np.pad(by_group, ((0, 0), (0, more), (0, 0))).reshape(-1, rows.shape[1])


def factors_of(node: Node, *, wide: bool) -> tuple[requantise.Ints | None, requantise.Form]:
    """Return the constants of channels, or None if they do not fit, and how sums are rescaled."""
    matrix, params = matrix_of(node), params_of(node)
    if node.inputs[0].dtype is DType.INT8:
        return channel_constants(matrix, node, params), requantise.Rescaling.of(params)
    finish_and_words = finish_s16.finish16(node, wide=wide)
    if finish_and_words is None:
        return None, requantise.Rescaling.of(params)
    finish, words = finish_and_words
    if finish.sums is finish_s16.Sums.LONG:
        return requantise.constants16(words), requantise.Rescaling16(finish)
    largest = largest_sums(matrix.astype(np.int64), -DType.INT16.min)
    if finish.is_wide:
        constants, bits = requantise.wide_constants(words, int(largest.max(initial=0)))
        return constants, requantise.Rescaling16(finish, bits)
    return requantise.constants_of(params, bias_of(node), largest), requantise.Rescaling16(finish)


def arranged(matrix: npt.NDArray[np.int8], lanes: int) -> npt.NDArray[np.int8]:
    """Return weights by what one vector meets: (groups, steps, 4, values of a vector).

    The last vector of a sum ends with its last value.  Where it overlaps the one before it meets
    weights of 0, so that nothing behind the values is ever read.
    """
    channels, values = matrix.shape
    groups, steps = -(-channels // requantise.LANES), steps_of(values, lanes)
    padded = np.zeros((groups * requantise.LANES, steps * lanes), np.int8)
    whole = values // lanes * lanes
    padded[:channels, :whole] = matrix[:, :whole]
    if whole < values:
        first = (steps * lanes if values > lanes else values) - (values - whole)
        padded[:channels, first : first + values - whole] = matrix[:, whole:]
    by_group = padded.reshape(groups, requantise.LANES, steps, lanes)
    return np.ascontiguousarray(by_group.transpose(0, 2, 1, 3))
