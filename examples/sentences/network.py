"""The layers of a causal transformer in numpy, forward and backward.

Tokens are embedded; each block adds an attention with rotary positions, whose heads share keys and
values in groups, and a SwiGLU, both of normalised rows (RMS); a last normalisation and a layer give
a score for each token that may come next.  Weights are (outputs, inputs).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.floating]
Parameters: TypeAlias = Mapping[str, Array]
Gradients: TypeAlias = dict[str, Array]

EPSILON = 1e-5


@dataclass(frozen=True, slots=True)
class Shape:
    """How large the model is."""

    tokens: int = 32
    width: int = 64
    heads: int = 4
    groups: int = 2
    hidden: int = 64
    blocks: int = 2
    length: int = 64

    @property
    def depth(self) -> int:
        """Return the elements of a head."""
        return self.width // self.heads

    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each parameter by its name."""
        kept = self.groups * self.depth
        shapes: dict[str, tuple[int, ...]] = {"embedding": (self.tokens, self.width)}
        for block in range(self.blocks):
            of_block = {
                "attention_norm": (self.width,),
                "query": (self.width, self.width),
                "key": (kept, self.width),
                "value": (kept, self.width),
                "output": (self.width, self.width),
                "swiglu_norm": (self.width,),
                "gate": (self.hidden, self.width),
                "up": (self.hidden, self.width),
                "down": (self.width, self.hidden),
            }
            shapes |= {f"{block}/{name}": shape for name, shape in of_block.items()}
        return {**shapes, "norm": (self.width,), "head": (self.tokens, self.width)}


SHAPE = Shape()


def rotary_tables(shape: Shape) -> tuple[Array, Array]:
    """Return cosines and sines (positions, half a head) of the angles by which pairs are turned."""
    half = shape.depth // 2
    angles = np.outer(np.arange(shape.length), 100.0 ** (-np.arange(half) / half))
    return np.cos(angles), np.sin(angles)


class Value:
    """An array on the way to a loss, and how the slope of the loss goes back from it."""

    def __init__(self, data: Array, *sources: Value) -> None:
        self.data = data
        self.slope: Array = np.zeros_like(data)
        self.sources = sources
        self.back: Callable[[], None] = lambda: None

    def backward(self) -> None:
        """Add the slope of this number to that of all that it was computed from."""
        order: list[Value] = []
        seen: set[int] = set()

        def visit(value: Value) -> None:
            if id(value) not in seen:
                seen.add(id(value))
                for source in value.sources:
                    visit(source)
                order.append(value)

        visit(self)
        self.slope = np.ones_like(self.data)
        for value in reversed(order):
            value.back()
            value.back, value.sources = lambda: None, ()  # arrays on the way are free at once


def linear(x: Value, weights: Value) -> Value:
    """Multiply rows by the transpose of weights."""
    y = Value(x.data @ weights.data.T, x, weights)

    def back() -> None:
        x.slope += y.slope @ weights.data
        rows = y.slope.reshape(-1, y.slope.shape[-1])
        weights.slope += rows.T @ x.data.reshape(-1, x.data.shape[-1])

    y.back = back
    return y


def add(a: Value, b: Value) -> Value:
    """Add two arrays of one shape."""
    y = Value(a.data + b.data, a, b)

    def back() -> None:
        a.slope += y.slope
        b.slope += y.slope

    y.back = back
    return y


def embedded(tokens: npt.NDArray[np.int64], table: Value) -> Value:
    """Take a row of a table for each token."""
    y = Value(table.data[tokens], table)
    y.back = lambda: np.add.at(table.slope, tokens, y.slope)
    return y


def normalised(x: Value, gain: Value) -> Value:
    """Divide rows by the root of their mean square, and multiply by a gain."""
    root = np.sqrt(np.square(x.data).mean(axis=-1, keepdims=True) + EPSILON)
    unit = x.data / root
    y = Value(unit * gain.data, x, gain)

    def back() -> None:
        slope = y.slope * gain.data
        gain.slope += (y.slope * unit).reshape(-1, unit.shape[-1]).sum(axis=0)
        x.slope += (slope - unit * (slope * unit).mean(axis=-1, keepdims=True)) / root

    y.back = back
    return y


def gated(gate: Value, up: Value) -> Value:
    """Multiply by a gate times its sigmoid."""
    sigmoid = 1 / (1 + np.exp(-gate.data))
    silu = gate.data * sigmoid
    y = Value(silu * up.data, gate, up)

    def back() -> None:
        gate.slope += y.slope * up.data * (sigmoid + silu * (1 - sigmoid))
        up.slope += y.slope * silu

    y.back = back
    return y


def turned(x: Array, cosines: Array, sines: Array) -> Array:
    """Turn element i of each head (..., heads, D) with element i + D / 2."""
    first, second = np.split(x, 2, axis=-1)
    return np.concatenate(
        [first * cosines - second * sines, first * sines + second * cosines], axis=-1
    )


def attention(query: Value, key: Value, value: Value, shape: Shape) -> Value:
    """Let each row of (batch, rows, ...) see those up to itself."""
    batch, rows = query.data.shape[:2]
    share = shape.heads // shape.groups
    cosines, sines = (
        table[:rows, None, :].astype(query.data.dtype) for table in rotary_tables(shape)
    )

    def split(x: Array, heads: int) -> Array:
        return x.reshape(batch, rows, heads, shape.depth)

    q = turned(split(query.data, shape.heads), cosines, sines)
    k = np.repeat(turned(split(key.data, shape.groups), cosines, sines), share, axis=2)
    v = np.repeat(split(value.data, shape.groups), share, axis=2)
    q, k, v = (np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for x in (q, k, v))
    scale = 1 / np.sqrt(shape.depth)
    scores = (q @ k.transpose(0, 1, 3, 2)) * scale
    scores = np.where(np.tri(rows, dtype=np.bool_), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    mixed = (weights @ v).transpose(0, 2, 1, 3)
    y = Value(mixed.reshape(batch, rows, -1), query, key, value)

    def joined(x: Array) -> Array:
        """Return the slope of a group, which its heads have in common."""
        heads = x.transpose(0, 2, 1, 3).reshape(batch, rows, shape.groups, share, shape.depth)
        return np.asarray(heads.sum(axis=3))

    def back() -> None:
        slope = split(y.slope, shape.heads).transpose(0, 2, 1, 3)
        of_weights = slope @ v.transpose(0, 1, 3, 2)
        of_scores = weights * (of_weights - (of_weights * weights).sum(axis=-1, keepdims=True))
        of_scores = of_scores * scale
        of_query = turned((of_scores @ k).transpose(0, 2, 1, 3), cosines, -sines)
        of_key = turned(joined(of_scores.transpose(0, 1, 3, 2) @ q), cosines, -sines)
        query.slope += of_query.reshape(query.slope.shape)
        key.slope += of_key.reshape(key.slope.shape)
        value.slope += joined(weights.transpose(0, 1, 3, 2) @ slope).reshape(value.slope.shape)

    y.back = back
    return y


def scores_of(
    parameters: Mapping[str, Value], tokens: npt.NDArray[np.int64], shape: Shape = SHAPE
) -> Value:
    """Return scores (batch, rows, tokens) of what comes next, for rows of tokens."""
    x = embedded(tokens, parameters["embedding"])
    for block in range(shape.blocks):
        of = {name: parameters[f"{block}/{name}"] for name in _BLOCK}
        rows = normalised(x, of["attention_norm"])
        q, k, v = (linear(rows, of[name]) for name in ("query", "key", "value"))
        x = add(x, linear(attention(q, k, v, shape), of["output"]))
        rows = normalised(x, of["swiglu_norm"])
        inner = gated(linear(rows, of["gate"]), linear(rows, of["up"]))
        x = add(x, linear(inner, of["down"]))
    return linear(normalised(x, parameters["norm"]), parameters["head"])


_BLOCK = (
    "attention_norm", "query", "key", "value", "output", "swiglu_norm", "gate", "up", "down",
)  # fmt: skip


def loss_of(
    parameters: Mapping[str, Value], tokens: npt.NDArray[np.int64], shape: Shape = SHAPE
) -> Value:
    """Return the mean cross-entropy of the next tokens, up to the end of each line."""
    scores = scores_of(parameters, tokens[:, :-1], shape)
    wanted = tokens[:, 1:]
    # The first of the zeros that fill a line up is its end, the others are no part of it.
    counts = (tokens[:, :-1] > 0) | (np.arange(wanted.shape[1]) == 0)
    powers = np.exp(scores.data - scores.data.max(axis=-1, keepdims=True))
    shares = powers / powers.sum(axis=-1, keepdims=True)
    of_wanted = np.take_along_axis(shares, wanted[..., None], axis=-1)[..., 0]
    total = counts.sum()
    loss = Value(np.asarray(-(np.log(of_wanted + 1e-30) * counts).sum() / total), scores)

    def back() -> None:
        slope = shares.copy()
        np.put_along_axis(slope, wanted[..., None], of_wanted[..., None] - 1, axis=-1)
        scores.slope += loss.slope * slope * counts[..., None] / total

    loss.back = back
    return loss
