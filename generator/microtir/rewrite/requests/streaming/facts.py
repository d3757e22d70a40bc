"""Facts about a push: what it computes of each layer, and a check that the window needs no more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from microtir.dtype import DType
from microtir.errors import GraphError
from microtir.graph.ir import Array, Graph, StreamedLayer, Tensor
from microtir.rewrite.facts.macs import macs
from microtir.rewrite.reference import execute, execute_steps
from microtir.rewrite.requests.streaming.follow import pads
from microtir.rewrite.requests.streaming.shares import Share
from microtir.rewrite.requests.streaming.timelines import Timelines

_SEED = 20
_PUSHES = 6  # of each phase


def layers_of(
    graph: Graph, lines: Timelines, shares: Mapping[Tensor, Share]
) -> tuple[StreamedLayer, ...]:
    """Return the layers of a window's graph that multiply, and what a push computes of them."""
    layers = []
    for node in graph.nodes:
        work = macs(node)
        if not work:
            continue
        follow = lines.follows.get(node)
        if follow is None:
            layers.append(StreamedLayer(node, 1, 1, work, work, is_padded=False))
            continue
        rows, runs = node.output.shape[follow.axis], shares[node.output].computed
        computed, steady = sum(run.count for run in runs), lines.of[node.output].steady
        is_anew = pads(node, follow) and not all(map(steady.holds, runs))
        layers.append(StreamedLayer(node, rows, computed, work, work // rows * computed, is_anew))
    return tuple(layers)


def windows(x: Tensor, axis: int, pushes: Sequence[Array]) -> Iterator[Array]:
    """Yield the window after each push; it begins filled with zeros.

    Args:
        x: the argument that holds it.
        axis: along which its rows are frames.
        pushes: the frames of each.
    """
    window = np.full(x.shape, zero_of(x), x.dtype.value)
    for frames in pushes:
        longer = np.concatenate([window, frames], axis)
        window = longer.take(range(frames.shape[axis], longer.shape[axis]), axis)
        yield window


def zero_of(tensor: Tensor) -> int:
    """Return the stored value that means 0."""
    known = tensor.type.quantization
    return 0 if known is None or known.is_per_channel else known.zero_point


def check_push(push: Graph) -> None:
    """Compare pushes with the graph of the whole window, bit for bit, on random frames.

    Raises:
        GraphError: an output differs.
    """
    stream = push.stream
    assert stream is not None, "only pushes are checked"
    (frames,) = (tensor for tensor in push.arguments if tensor.name == stream.input.name)
    generator = np.random.default_rng(_SEED)
    count = _PUSHES * max(state.turns for state in push.states)
    pushes = [_random(generator, frames) for _ in range(count)]
    others = {t.name: _random(generator, t) for t in push.arguments if t is not frames}
    inputs = [{**others, frames.name: values} for values in pushes]
    whole = windows(stream.input, stream.axis, pushes)
    for number, (window, got) in enumerate(zip(whole, execute_steps(push, inputs), strict=True)):
        expected = execute(stream.whole, {**others, stream.input.name: window})
        for name, value in expected.items():
            if got[name].tobytes() != value.tobytes():
                raise GraphError(
                    f"in run {number}, the output '{name}' differs from that of the whole window",
                    where=f"graph '{push.name}'",
                )


def _random(generator: np.random.Generator, tensor: Tensor) -> Array:
    dtype = np.dtype(tensor.dtype.value)
    if tensor.dtype.is_float:
        return generator.uniform(-2.0, 2.0, tensor.shape).astype(dtype)
    is_bool = tensor.dtype is DType.BOOL
    low, high = (0, 1) if is_bool else (tensor.dtype.min, tensor.dtype.max)
    return generator.integers(low, high, tensor.shape, endpoint=True).astype(dtype)
