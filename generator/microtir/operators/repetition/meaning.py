"""Define in numpy what operators compute that repeat elements."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.repetition.definition import MirrorPad, Tile


def tile(op: Tile, _node: Node, x: Array) -> Array:
    """Compute TILE, BROADCAST_TO and FILL."""
    return np.tile(x, op.multiples)


def mirror_pad(op: MirrorPad, _node: Node, x: Array) -> Array:
    """Compute MIRROR_PAD."""
    if not op.before:
        return np.array(x)  # a scalar, which numpy cannot pad
    margins = tuple(zip(op.before, op.after, strict=True))
    return np.pad(x, margins, mode="symmetric" if op.edge else "reflect")
