"""Runs the numpy reference on inputs that a rule makes, for the digests of its outputs."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping

import numpy as np

from microtir.certificate.data import VectorFacts
from microtir.dtype import DType
from microtir.graph.ir import Array, Graph, TensorType
from microtir.module.ir_module import ModelInfo
from microtir.rewrite.reference.evaluate import execute_steps

_RUNS, _RUNS_IN_TURN = 2, 8

_MULTIPLIER, _INCREMENT = 1664525, 1013904223

# How the upper half of a state of the generator becomes a value of each type.
_VALUES = {
    DType.INT8: lambda upper: (upper >> 8) - 128,
    DType.UINT8: lambda upper: upper >> 8,
    DType.INT16: lambda upper: upper - 32768,
    DType.FLOAT32: lambda upper: ((upper >> 8) - 128) / 128,
}


def vectors_of(graph: Graph, model: ModelInfo) -> Iterator[VectorFacts]:
    """Yield a run for each seed, where C and numpy agree to the bit: outputs are integers.

    A model with inputs of other types than the rule has values for has no runs.
    """
    if any(port.type.dtype.is_float for port in model.outputs):
        return
    runs = runs_of(graph)
    for (seed, _), outputs in zip(runs, execute_steps(graph, (x for _, x in runs)), strict=True):
        yield VectorFacts(seed, digests_of(outputs, model))


def runs_of(graph: Graph) -> list[tuple[int, dict[str, Array]]]:
    """Return the seed and the inputs of each run; those of a model with states are in turn."""
    seeds = range(1, 1 + (_RUNS_IN_TURN if graph.states else _RUNS))
    return [(seed, x) for seed in seeds if (x := _inputs_of(graph, seed)) is not None]


def _inputs_of(graph: Graph, seed: int) -> dict[str, Array] | None:
    """Return the inputs of a run by name; None where an input has a type without a rule.

    States are no inputs: a caller gives them no values.
    """
    states = {state.before for state in graph.states}
    tensors = [tensor for tensor in graph.inputs if tensor not in states]
    types = [graph.type_of_all(tensor) for tensor in tensors]
    if not all(type_.dtype in _VALUES for type_ in types):
        return None
    return {
        tensor.name: _values(type_, seed + number)
        for number, (tensor, type_) in enumerate(zip(tensors, types, strict=True))
    }


def _values(type_: TensorType, seed: int) -> Array:
    """Return values in row-major order: state = 1664525 * state + 1013904223 modulo 2^32."""
    state, upper = seed, []
    for _ in range(math.prod(type_.shape)):
        state = (_MULTIPLIER * state + _INCREMENT) % 2**32
        upper.append(state >> 16)
    values: Array = _VALUES[type_.dtype](np.array(upper, np.int64)).astype(type_.dtype.value)
    return values.reshape(type_.shape)


def digests_of(outputs: Mapping[str, Array], model: ModelInfo) -> dict[str, str]:
    """Return the SHA-256 of each output by its C name, from arrays by their names in the model."""
    return {
        port.c_name: hashlib.sha256(_little_endian(outputs[port.name])).hexdigest()
        for port in model.outputs
    }


def _little_endian(array: Array) -> bytes:
    return array.astype(array.dtype.newbyteorder("<")).tobytes()
