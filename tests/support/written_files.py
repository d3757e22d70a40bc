"""Quantise a float graph, write it, and compare what tflite-micro and LiteRT make of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from microtir.config import Numerics
from microtir.frontend import from_tflite
from microtir.graph.ir import Array, Graph
from microtir.quantise import Quantised, QuantiseOptions, quantise
from microtir.quantise.runs import stored
from microtir.rewrite.reference import execute_steps
from microtir.rewrite.requests.numerics import ChooseNumerics
from microtir.writers import tflite_bytes
from tests.support.litert import run_litert_steps
from tests.support.tflm import run_tflm_sequence

_RUNS = 3
_FLOATS = (1e-4, 1e-5)  # relative and absolute, where a layer stays in floats


@dataclass(frozen=True, eq=False)
class WrittenFile:
    """A quantised graph, its file, the graph that is read of it, and arguments of some runs."""

    quantised: Quantised
    data: bytes
    again: Graph
    steps: Sequence[Mapping[str, Array]]

    @staticmethod
    def of(graph: Graph, options: QuantiseOptions, count: int = 6) -> WrittenFile:
        """Quantise a graph with random samples, and write it."""
        rng = np.random.default_rng(1)
        samples: dict[str, Array] = {}
        for tensor in graph.arguments:
            shape = count, *graph.type_of_all(tensor).shape
            samples[tensor.name] = (
                rng.normal(0, 1, shape).astype(np.float32)
                if tensor.dtype.is_float
                else rng.integers(0, 2, shape).astype(tensor.dtype.value)
            )
        result = quantise(graph, samples, options)
        data = tflite_bytes(result.graph, int4=result.weights4)
        again = from_tflite(data, name=graph.name).graph
        assert again is not None
        steps = [
            {t.name: stored(samples[t.name][run], t.type) for t in again.arguments}
            for run in range(_RUNS)
        ]
        return WrittenFile(result, data, again, steps)

    def differences(self, numerics: Numerics) -> int:
        """Return how many values of a reference are not those of the graph with its numerics.

        Raises:
            RuntimeError: the reference refuses the file.
        """
        names = [tensor.name for tensor in self.again.results]
        graph = ChooseNumerics(numerics)(self.again)
        arguments = [list(step.values()) for step in self.steps]
        runs = _REFERENCES[numerics](self.data, arguments, len(names))
        pairs = zip(runs, execute_steps(graph, self.steps), strict=True)
        return sum(
            _unequal(values, wanted[name])
            for outputs, wanted in pairs
            for name, values in zip(names, outputs, strict=True)
        )


def _unequal(values: Array, wanted: Array) -> int:
    if values.dtype.kind == "f":
        return int((~np.isclose(values, wanted, *_FLOATS)).sum())
    return int((values != wanted).sum())


def _micro(data: bytes, steps: list[list[Array]], outputs: int) -> Sequence[Sequence[Array]]:
    return run_tflm_sequence(data, steps, outputs)


def _litert(data: bytes, steps: list[list[Array]], outputs: int) -> Sequence[Sequence[Array]]:
    return [run[:outputs] for run in run_litert_steps(data, steps)]


_REFERENCES: Mapping[
    Numerics, Callable[[bytes, list[list[Array]], int], Sequence[Sequence[Array]]]
] = {Numerics.TFLM: _micro, Numerics.TFLITE_REF: _litert}


def random_weights(layers: Sequence[object], channels: int) -> Iterator[Array]:
    """Yield weights of a network of the benchmark, of the sizes that training would give them."""
    from benchmarks.quantise.networks import Conv, Dense, Residual

    rng = np.random.default_rng(7)
    for layer in layers:
        match layer:
            case Conv():
                depth = 1 if layer.is_depthwise else channels
                shape = layer.channels, depth, layer.kernel, layer.kernel
                channels = layer.channels
                yield rng.normal(0, (2 / (depth * layer.kernel**2)) ** 0.5, shape)
                yield rng.uniform(0.5, 1.5, channels)
                yield from (rng.normal(0, 0.2, channels) for _ in range(2))
                yield rng.uniform(0.5, 1.5, channels)
            case Residual():
                yield from random_weights(layer.layers, channels)
            case Dense():
                yield rng.normal(0, (2 / channels) ** 0.5, (layer.units, channels))
                yield rng.normal(0, 0.2, layer.units)
                channels = layer.units
            case _:
                pass
