"""Define in numpy what operators compute that cut samples into frames and join frames."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.framing.definition import Delay, Framer, OverlapAdd, Stacker, Window


def _saturated(values: Array) -> Array:
    return np.clip(values, -(1 << 15), (1 << 15) - 1).astype(np.int16)


def window(op: Window, _node: Node, x: Array, weights: Array) -> Array:
    """Compute SignalWindow: products are rounded down."""
    products = x.reshape(-1, len(weights)).astype(np.int64) * weights
    return _saturated(products >> op.shift).reshape(x.shape)


def framer(op: Framer, node: Node, x: Array, *memory: Array) -> tuple[Array, ...]:
    """Compute SignalFramer: frames begin where the oldest samples lie that are held."""
    rows = x.reshape(-1, x.shape[-1])
    held = memory[0] if memory else rows[:, :0]
    known = np.concatenate([held, rows], axis=1)
    starts = range(0, x.shape[-1], op.step)
    frames = np.stack([known[:, at : at + op.size] for at in starts], axis=1)
    valid = np.array(True)
    memory_after: tuple[Array, ...] = (known[:, x.shape[-1] :],) if memory else ()
    if len(memory) == 2:
        missing = -(-op.size // op.step) - 1
        before = int(memory[1])
        frames[:, : max(0, missing - before)] = 0
        valid = np.array(before >= missing)
        memory_after += (np.array(min(before + len(starts), missing), np.int32),)
    return frames.reshape(node.outputs[0].shape), valid, *memory_after


def stacker(op: Stacker, _node: Node, x: Array, *memory: Array) -> tuple[Array, ...]:
    """Compute SignalStacker: below zero, the number tells that no frame has come yet."""
    if not memory:
        return x, np.array(True)
    before, due = memory[0], int(memory[1])
    if due < 0:
        before, due = np.tile(x, op.left + op.right), -due - 1
    known = np.concatenate([before, x])
    stack = known if due == 0 else np.zeros_like(known)
    following = op.step - 1 if due == 0 else due - 1
    return stack, np.array(due == 0), known[len(x) :], np.array(following, np.int32)


def overlap_add(op: OverlapAdd, node: Node, x: Array, *memory: Array) -> tuple[Array, ...]:
    """Compute SignalOverlapAdd: each sum is clamped when a frame is added."""
    frames = x.reshape(-1, *x.shape[-2:])
    sums = np.zeros((len(frames), x.shape[-1]), x.dtype)
    if memory:
        sums[:, : memory[0].shape[1]] = memory[0]
    samples = []
    for number in range(x.shape[-2]):
        frame = frames[:, number]
        if x.dtype == np.int16:
            sums = _saturated(sums.astype(np.int32) + frame)
        else:
            sums = sums + frame
        samples.append(sums[:, : op.step])
        sums = np.concatenate([sums[:, op.step :], np.zeros_like(sums[:, : op.step])], axis=1)
    result = np.concatenate(samples, axis=1).reshape(node.outputs[0].shape)
    return result, *([sums[:, : x.shape[-1] - op.step]] if memory else [])


def delay(_op: Delay, _node: Node, x: Array, *memory: Array) -> tuple[Array, ...]:
    """Compute SignalDelay."""
    if not memory:
        return (x,)
    rows = x.reshape(-1, x.shape[-1])
    known = np.concatenate([memory[0], rows], axis=1)
    return known[:, : x.shape[-1]].reshape(x.shape), known[:, x.shape[-1] :]
