"""Packed weights and constants of channels, as the kernels of linear layers read them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.graph.ir import Array, Node
from microtir.kernels.common.requantise import WORDS, Requantisation, Rescaling, requantisation
from microtir.kernels.common.weights import folded_bias, largest_sums, matrix_of, pack_pairs
from microtir.operators.common.linear import LinearParams, params_of
from microtir.tir import ir


@dataclass(frozen=True, slots=True, eq=False)
class PackedLinear:
    """Constants of a layer: dual-packed weights (pairs, ...) and {bias, factor} per channel.

    The weights of the layer are `number` more than those that are packed.
    """

    weights: ir.Buffer
    constants: ir.Buffer
    rescaling: Rescaling
    arranged: Array
    number: int = 0

    def lanes_of(self, first: int, channels: int) -> npt.NDArray[np.int16] | None:
        """Return lanes of an even number of channels from `first` on: (channels / 2, ...).

        None if they do not fit: other channels share lanes than in `weights`.
        """
        return _lanes(self.arranged[first : first + channels], self.number)

    def part(self, lanes: npt.NDArray[np.int16], first: int, channels: int) -> PackedLinear:
        """Return the constants of some channels, with their weights in another order."""
        data = self.constants.data
        assert data is not None
        rows = data[first : first + channels]
        return replace(
            self, weights=constant("weights", lanes), constants=constant("constants", rows)
        )


def _lanes(weights: Array, number: int) -> npt.NDArray[np.int16] | None:
    """Return dual-packed weights (channels, ...) less a number that int8 holds them without."""
    return pack_pairs((weights.astype(np.int16) - number).astype(np.int8), weights)


def constant(name: str, data: npt.NDArray[np.generic]) -> ir.Buffer:
    """Return a constant that is read by words."""
    values = np.ascontiguousarray(data)
    values.setflags(write=False)
    dtype = DType(values.dtype.name)
    return ir.Buffer(name, values.shape, dtype, ir.Scope.CONSTANT, values, alignment=4)


def bytes_of(*buffers: ir.Buffer | None) -> int:
    """Return the bytes of constants; None stands for one that is not there."""
    return sum(b.data.nbytes for b in buffers if b is not None and b.data is not None)


def channel_bytes(channels: int, at_once: int, weights: int, words: int = WORDS) -> int:
    """Return the bytes of channels whose last ones overlap, or are filled up.

    Args:
        channels: of the output.
        at_once: so many are packed at once.
        weights: bytes of them for a channel.
        words: of constants for a channel.
    """
    return -(-channels // at_once) * at_once * (weights + words * DType.INT32.bytes)


def requantised(node: Node, params: LinearParams | None = None) -> Requantisation | None:
    """Return the constants of a layer's channels; None if they do not fit the sequence.

    They are for the layer's own parameters, unless others are passed.
    """
    wide = matrix_of(node).astype(np.int64)
    largest = largest_sums(wide, -node.inputs[0].dtype.min)
    return requantisation(params or params_of(node), folded_bias(wide, node), largest)


def pack_linear(arranged: Array, node: Node, number: int = 0) -> PackedLinear | None:
    """Pack a layer; None if its weights do not fit the form.

    Args:
        arranged: the weights in the order of the kernel, (channels, ...).
        node: with a bias as third input, or without.
        number: what weights are less as they are packed.
    """
    lanes = _lanes(arranged, number) if len(arranged) > 1 else None
    factors = requantised(node)
    if lanes is None or factors is None:
        return None
    constants = constant("constants", factors.constants)
    return PackedLinear(constant("weights", lanes), constants, factors.rescaling, arranged, number)
