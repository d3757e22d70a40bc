"""Define in numpy what the ring of newest inputs and its counter are."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.circular_buffer.definition import CircularBuffer, Countdown


def circular_buffer(_op: CircularBuffer, _node: Node, ring: Array, newest: Array) -> Array:
    """Compute CIRCULAR_BUFFER: slots are along axis 1."""
    return np.concatenate([ring[:, 1:], newest], axis=1)


def countdown(op: Countdown, _node: Node, count: Array) -> tuple[Array, ...]:
    """Compute COUNTDOWN."""
    left = max(int(count), 1)
    following = op.period if left == 1 else left - 1
    return np.array(left == 1), np.array(following, np.int32)
