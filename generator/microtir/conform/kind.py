"""Names the kinds of kernels, and the extents that cases of each are drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from microtir.operators.common.attributes import Activation


class Kind(Enum):
    """A kind of kernel; the value is what a specification calls it."""

    CONVOLUTION = "convolution"
    DEPTHWISE = "depthwise"
    DENSE = "fully_connected"
    AVERAGE_POOL = "average_pool"
    MAX_POOL = "max_pool"
    ADD = "add"
    MUL = "mul"
    SOFTMAX = "softmax"


class Range(NamedTuple):
    """The integers from `low` to `high`, in steps."""

    low: int
    high: int
    step: int = 1


ACTIVATIONS = (Activation.NONE, Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1)

_FLAG = Range(0, 1)
_CHANNELS = Range(1, 35)
_IMAGE = {
    "batches": Range(1, 3),
    "input_height": Range(1, 11),
    "input_width": Range(1, 11),
    "input_channels": _CHANNELS,
    "filter_height": Range(1, 5),
    "filter_width": Range(1, 5),
    "stride_height": Range(1, 3),
    "stride_width": Range(1, 3),
    "pad_top": Range(0, 4),
    "pad_bottom": Range(0, 4),
    "pad_left": Range(0, 4),
    "pad_right": Range(0, 4),
    "activation": Range(0, len(ACTIVATIONS) - 1),
}
_WEIGHTED = {
    **_IMAGE,
    "dilation_height": Range(1, 3),
    "dilation_width": Range(1, 3),
    "has_bias": _FLAG,
    "per_channel": _FLAG,
}
_ELEMENTWISE = {
    "elements": Range(1, 300),
    "activation": Range(0, len(ACTIVATIONS) - 1),
}

RANGES: Mapping[Kind, Mapping[str, Range]] = MappingProxyType({
    Kind.CONVOLUTION: {**_WEIGHTED, "output_channels": _CHANNELS},
    Kind.DEPTHWISE: {**_WEIGHTED, "depth_multiplier": Range(1, 4)},
    Kind.DENSE: {
        "batches": Range(1, 5),
        "input_channels": Range(1, 300),
        "output_channels": _CHANNELS,
        "has_bias": _FLAG,
        "per_channel": _FLAG,
        "activation": Range(0, len(ACTIVATIONS) - 1),
    },
    # A sum over the largest window leaves 16 bits.
    Kind.AVERAGE_POOL: {**_IMAGE, "filter_height": Range(1, 20), "filter_width": Range(1, 20)},
    Kind.MAX_POOL: _IMAGE,
    Kind.ADD: _ELEMENTWISE,
    Kind.MUL: _ELEMENTWISE,
    Kind.SOFTMAX: {"batches": Range(1, 5), "input_channels": Range(1, 70)},
})  # fmt: skip
"""Extents that are drawn for each kind; a specification narrows them to what a function takes."""
