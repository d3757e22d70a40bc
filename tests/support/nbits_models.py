"""Layers of com.microsoft whose weights have few bits, drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from onnx import helper

from tests.support.onnx_models import Array

Rng = np.random.Generator
DOMAINS = {"com.microsoft": 1}


class Zeros(Enum):
    """How zero points are given."""

    NONE = "none"
    PACKED = "packed"
    FLOATS = "floats"


@dataclass(frozen=True)
class NbitsLayer:
    """A node, its constants, and how large the weights are that they stand for."""

    node: Any
    constants: dict[str, Array]
    largest: float


def packed(values: Array, bits: int) -> Array:
    """Return integers along the last axis in bytes, the first in the low bits."""
    count = 8 // bits
    spare = (0, -values.shape[-1] % count)
    full = np.pad(values, [*[(0, 0)] * (values.ndim - 1), spare]).astype(np.uint8)
    each = full.reshape(*values.shape[:-1], -1, count) << np.arange(0, 8, bits, dtype=np.uint8)
    return np.asarray(np.bitwise_or.reduce(each, axis=-1), np.uint8)


def nbits_layer(
    rng: Rng, channels: int, depth: int, *, bits: int = 4, block: int = 32,
    zeros: Zeros = Zeros.NONE, has_bias: bool = False, flat: bool = False, tag: str = "",
    **more: Any,
) -> NbitsLayer:  # fmt: skip
    """Return a MatMulNBits from x to y, names with a tag behind them."""
    blocks, most = -(-depth // block), 1 << bits
    scales = (rng.uniform(0.5, 2, (channels, blocks)) / most).astype(np.float32)
    stored = rng.integers(0, most, (channels, blocks, block))
    constants = {f"b{tag}": packed(stored, bits), f"scales{tag}": scales}
    if zeros is Zeros.PACKED:
        constants[f"zeros{tag}"] = packed(rng.integers(0, most, (channels, blocks)), bits)
    elif zeros is Zeros.FLOATS:
        drawn = rng.uniform(0, most, (channels, blocks))
        constants[f"zeros{tag}"] = drawn.astype(np.float32)
    if has_bias:
        constants[f"bias{tag}"] = rng.normal(size=channels).astype(np.float32)
    names = [name if name in constants else "" for name in (f"zeros{tag}", "", f"bias{tag}")]
    while names and not names[-1]:
        names.pop()
    if flat:
        flattened = {n for n in constants if n.startswith(("scales", "zeros"))}
        constants |= {name: constants[name].reshape(-1) for name in flattened}
    node = helper.make_node(
        "MatMulNBits", [f"x{tag}", f"b{tag}", f"scales{tag}", *names], [f"y{tag}"],
        domain="com.microsoft", K=depth, N=channels, bits=bits, block_size=block, **more,
    )  # fmt: skip
    return NbitsLayer(node, constants, float(scales.max()) * most)
