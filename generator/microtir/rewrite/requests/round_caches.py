"""Caches of attention as states of int8: the keys and values of a token have a scale a head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from microtir.config.enums import AttentionCache
from microtir.dtype import DType
from microtir.errors import ConfigError
from microtir.graph.ir import Graph, Node, Quantization, State, Tensor, TensorType
from microtir.graph.rewriting import Keeps, Rewrite
from microtir.operators.arithmetic.definition import Maximum, Mul
from microtir.operators.attention.definition import CachedAttention
from microtir.operators.conversion.definition import Quantize
from microtir.operators.division.definition import Div
from microtir.operators.indexing.definition import DynamicUpdateSlice
from microtir.operators.reduction.definition import ReduceMax
from microtir.operators.state.definition import Assign
from microtir.operators.unary.definition import Abs
from microtir.rewrite.requests.emitter import Emitter

_UNSCALED = Quantization((1.0,), (0,))
_LARGEST = DType.INT8.max
_LEAST = 2.0**-120
"""Least magnitude of a vector that is not zeros: 127 divided by it is finite."""


@dataclass(frozen=True, slots=True)
class RoundCaches(Rewrite):
    """Rounds keys and values to int8 when a run stores them in a state.

    The scale of a vector is its largest magnitude divided by 127, as in `BlockDense`.

    Args:
        cache: what is asked for; `model` leaves the graph as it is.

    Raises:
        ConfigError: int8 is asked for, and the model keeps no such cache.
    """

    cache: AttentionCache
    keeps = Keeps.NOTHING

    def __call__(self, graph: Graph) -> Graph:
        if self.cache is AttentionCache.MODEL:
            return graph
        caches = dict(_caches(graph))
        if not caches:
            raise ConfigError(
                "int8 needs attention whose keys and values are states, but the model has none",
                where="pass_config.graph.attention_cache",
                legal="the value model",
                fix="name the inputs and outputs of the cache with the option 'states'",
            )
        return _rounded(graph, caches)


@dataclass(frozen=True, slots=True)
class _Cache:
    """The state of a cache, and what stands for it: integers, and their scales."""

    state: State
    parts: tuple[State, State]

    @staticmethod
    def of(state: State) -> _Cache:
        shape = state.type.shape
        types = (
            TensorType(shape, DType.INT8, _UNSCALED),
            TensorType((*shape[:-1], 1), DType.FLOAT32),
        )
        ends = [
            [replace(tensor, name=f"{tensor.name}{suffix}", type=type_)
             for type_, suffix in zip(types, ("", "_scales"), strict=True)]
            for tensor in (state.before, state.after)
        ]  # fmt: skip
        integers, scales = (
            State(before, after, np.zeros(before.shape, before.dtype.value))
            for before, after in zip(*ends, strict=True)
        )
        return _Cache(state, (integers, scales))


def _caches(graph: Graph) -> Iterator[tuple[Tensor, _Cache]]:
    """Yield the keys and values of each attention that alone reads them, with their states."""
    producers, consumers = graph.producers(), graph.consumers()
    states = {state.before: state for state in graph.states}

    def state_of(tensor: Tensor, reader: Node) -> State | None:
        update = producers.get(tensor)
        if update is None or not isinstance(update.op, DynamicUpdateSlice):
            return None
        state = states.get(update.inputs[0])
        if state is None or consumers[state.before] != (update,):
            return None
        keeps = producers[state.after]
        return state if set(consumers[tensor]) == {reader, keeps} else None

    for node in graph.nodes:
        if isinstance(node.op, CachedAttention):
            state_pairs = [(tensor, state_of(tensor, node)) for tensor in node.inputs[1:3]]
            if all(state is not None for _, state in state_pairs):
                yield from ((tensor, _Cache.of(state)) for tensor, state in state_pairs if state)


def _rounded(graph: Graph, caches: Mapping[Tensor, _Cache]) -> Graph:
    """Return the graph with other states, the updates of these, and attention that reads them."""
    parts: dict[Tensor, tuple[Tensor, Tensor]] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        cache = next((caches[t] for t in (*node.outputs, *node.inputs) if t in caches), None)
        if cache is None:
            nodes.append(node)
        elif isinstance(node.op, DynamicUpdateSlice):
            emit = Emitter(node)
            parts[node.output] = _update(emit, cache)
            nodes += emit.nodes
        elif isinstance(node.op, Assign):
            emit = Emitter(node)
            for value, state in zip(parts[node.inputs[0]], cache.parts, strict=True):
                emit.add(node.op, (value,), (state.after,))
            nodes += emit.nodes
        else:
            nodes.append(_attention(node, parts))
    replaced = {
        end: tuple(getattr(part, side) for part in cache.parts)
        for cache in caches.values()
        for side, end in (("before", cache.state.before), ("after", cache.state.after))
    }
    by_state = {cache.state: cache.parts for cache in caches.values()}
    return replace(
        graph,
        inputs=tuple(part for t in graph.inputs for part in replaced.get(t, (t,))),
        outputs=tuple(part for t in graph.outputs for part in replaced.get(t, (t,))),
        nodes=tuple(nodes),
        states=tuple(part for state in graph.states for part in by_state.get(state, (state,))),
    )


def _update(emit: Emitter, cache: _Cache) -> tuple[Tensor, Tensor]:
    """Round new vectors, and put them and their scales in their places."""
    _, rows, begin = emit.node.inputs
    largest = emit.tensor("largest", (*rows.shape[:-1], 1))
    emit.add(ReduceMax((3,), keep_dims=True), (emit.of("magnitudes", Abs(), rows),), (largest,))
    least, most, step = (
        emit.constant(what, np.array(value, np.float32))
        for what, value in (("least", _LEAST), ("most", _LARGEST), ("step", 1 / _LARGEST))
    )
    bounded = emit.of("bounded", Maximum(), largest, least)
    inverse = emit.tensor("inverse", largest.shape)
    emit.add(Div(), (most, bounded), (inverse,))
    integers = Tensor(f"{emit.node.name}_integers", replace(cache.parts[0].type, shape=rows.shape))
    emit.add(Quantize(), (emit.of("whole", Mul(), rows, inverse),), (integers,))
    scales = emit.of("scales", Mul(), bounded, step)
    afterwards = [Tensor(f"{emit.node.name}_{state.name}", state.type) for state in cache.parts]
    for state, new, after in zip(cache.parts, (integers, scales), afterwards, strict=True):
        emit.add(DynamicUpdateSlice(), (state.before, new, begin), (after,))
    return afterwards[0], afterwards[1]


def _attention(node: Node, parts: Mapping[Tensor, tuple[Tensor, Tensor]]) -> Node:
    """Return attention that reads integers and their scales; both caches are of one kind."""
    queries, keys, values, last = node.inputs
    (keys, key_scales), (values, value_scales) = parts[keys], parts[values]
    return replace(node, inputs=(queries, keys, values, last, key_scales, value_scales))
