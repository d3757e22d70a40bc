"""Weights in the order and width that the kernels read, packed offline.

A pair of output channels shares 16-bit lanes: a lane holds 256 * b + a.  SXTB16 extracts `a`; the
raw lane accumulates 256 * B + A next to it, so B is (raw - A) / 256 in the end.  This is the speed
of 16-bit weights at the size of 8-bit ones.  It asks that no raw sum leaves int32 and that a lane
fits 16 bits: checked for the actual weights.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from microtir.graph.ir import Array, Node
from microtir.kernels.common.packed_weights import fits_four_bits
from microtir.kernels.common.requantise import Ints
from microtir.operators.common.linear import bias_of
from microtir.operators.convolution.definition import DepthwiseConv2D

INPUT_MAGNITUDE = 128
QUAD = 4  # channels, or values, that a word holds
NIBBLE = 8  # what is added to weights of four bits but the uppermost ones of a lane
OCTET = 2 * QUAD
_LANE = np.iinfo(np.int16)


def matrix_of(node: Node) -> Array:
    """Return the weights of a layer as (channels, K), in the order of the values they meet."""
    weights = node.inputs[1].values
    if isinstance(node.op, DepthwiseConv2D):
        weights = weights.transpose(3, 1, 2, 0)
    matrix: Array = weights.reshape(len(weights), -1)
    return matrix


def channel_pairs(channels: int) -> list[tuple[int, int]]:
    """Return which output channels share lanes.

    With an odd number the last pair overlaps the one before.

    The overlap computes a channel twice, to the same value: cheaper than a kernel of its own.
    """
    pairs = [(c, c + 1) for c in range(0, channels - 1, 2)]
    return [*pairs, (channels - 2, channels - 1)] if channels % 2 else pairs


def channel_quads(channels: int, at_once: int = QUAD) -> list[int]:
    """Return channels four by four, or so many together; the last ones overlap those before."""
    starts = [min(first, channels - at_once) for first in range(0, channels, at_once)]
    return [start + n for start in starts for n in range(at_once)]


def pack_pairs(
    weights: npt.NDArray[np.int8], meant: npt.NDArray[np.int8] | None = None
) -> npt.NDArray[np.int16] | None:
    """Return dual-packed weights of channel pairs.

    Args:
        weights: (channels, ...), at least two channels.
        meant: the weights whose sums products come to, if these are others.

    Returns:
        (pairs, ...) int16 lanes, or None if a lane or a raw sum could overflow.
    """
    wide = weights.astype(np.int64)
    pairs = channel_pairs(len(wide))
    own = wide if meant is None else meant.astype(np.int64)
    lanes, summed = (np.stack([256 * w[b] + w[a] for a, b in pairs]) for w in (wide, own))
    high = np.stack([256 * own[b] for _, b in pairs])  # what is left of a raw sum
    totals = np.abs([summed, high]).reshape(2, len(pairs), -1).sum(axis=2) * INPUT_MAGNITUDE
    if lanes.min() < _LANE.min or lanes.max() > _LANE.max or totals.max() >= 1 << 31:
        return None
    return lanes.astype(np.int16)


def pack_nibbles(weights: npt.NDArray[np.int8]) -> npt.NDArray[np.int16] | None:
    """Return weights of four bits, those of four channels in a lane of 16 bits.

    The fourth one has a sign, the others are 8 more than they are: what lies below a channel is
    masked, or taken away, without a carry.  Raw sums wrap, so only what is left of each may not.

    Args:
        weights: (channels, ...), whole quads of them.

    Returns:
        (quads, ...) int16 lanes, or None if a weight or a sum does not fit.
    """
    if not fits_four_bits(weights):
        return None
    quads = weights.reshape(-1, QUAD, *weights.shape[1:]).astype(np.int64)
    totals = np.abs(quads).reshape(len(quads), QUAD, -1).sum(axis=2).max(axis=0)
    if any(int(total) * INPUT_MAGNITUDE << 4 * n >= 1 << 31 for n, total in enumerate(totals)):
        return None
    low = sum((quads[:, n] + NIBBLE) << 4 * n for n in range(QUAD - 1))
    lanes: npt.NDArray[np.int16] = (low + quads[:, QUAD - 1] * (1 << 12)).astype(np.int16)
    return lanes


def folded_bias(weights: Ints, node: Node) -> Ints:
    """Return bias per output channel less the share of the input's zero point.

    (channels, K) weights.
    """
    zero_point = node.inputs[0].type.quant.zero_point
    folded: Ints = bias_of(node) - zero_point * weights.astype(np.int64).sum(axis=1)
    return folded


def largest_sums(weights: Ints, magnitude: int = INPUT_MAGNITUDE) -> Ints:
    """Return the largest magnitude of the sum of products per channel, for any input."""
    sums: Ints = magnitude * np.abs(weights.astype(np.int64)).sum(axis=1)
    return sums
