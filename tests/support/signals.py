"""Models of tflite-micro's Signal library, one operator or several, run by all that know them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from flatbuffers import flexbuffers

import microtir
from microtir.graph.ir import Array
from microtir.operators import record_of
from microtir.rewrite.reference import execute_steps
from microtir.rewrite.reference.evaluate import initial_states
from microtir.tir.interpreter import Interpreter
from microtir.tir.ir import Buffer
from microtir.writers.tflite import TfliteBuilder
from tests.support.tflm import run_tflm_sequence

Steps = list[list[Array]]
Type = npt.DTypeLike


@dataclass
class SignalModel:
    """Operators side by side, or one behind the other."""

    builder: TfliteBuilder = field(default_factory=TfliteBuilder)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    given: list[tuple[tuple[int, ...], np.dtype[Any]]] = field(default_factory=list)
    names: int = 0

    def tensor(self, shape: Sequence[int], dtype: Type, data: Array | None = None) -> int:
        """Return a tensor with a name of its own."""
        self.names += 1
        return self.builder.tensor(f"t{self.names}", shape, dtype, data)

    def input(self, shape: Sequence[int], dtype: Type) -> int:
        """Return an input of the model."""
        self.inputs.append(self.tensor(shape, dtype))
        self.given.append((tuple(shape), np.dtype(dtype)))
        return self.inputs[-1]

    def operator(
        self,
        code: str,
        options: Mapping[str, Any],
        inputs: Sequence[int],
        *results: tuple[Sequence[int], Type],
    ) -> list[int]:
        """Add an operator and return its outputs."""
        made = [self.tensor(shape, dtype) for shape, dtype in results]
        packed = bytes(flexbuffers.Dumps(dict(options))) if options else b""
        self.builder.custom_operator(code, inputs, made, packed)
        return made

    def result(self, *tensors: int) -> None:
        """Make tensors outputs of the model."""
        self.outputs.extend(tensors)

    def build(self) -> bytes:
        """Return the file."""
        return self.builder.build(self.inputs, self.outputs)


def one(
    code: str,
    options: Mapping[str, Any],
    operands: Sequence[tuple[Sequence[int], Type, Array | None]],
    *results: tuple[Sequence[int], Type],
) -> SignalModel:
    """Return a model of one operator; operands without data are inputs."""
    model = SignalModel()
    indices = [
        model.input(shape, dtype) if data is None else model.tensor(shape, dtype, data)
        for shape, dtype, data in operands
    ]
    model.result(*model.operator(code, options, indices, *results))
    return model


def steps_of(model: SignalModel, rng: np.random.Generator, count: int) -> Steps:
    """Draw inputs of some runs: loud, quiet and silent ones."""
    return [[drawn(rng, shape, dtype) for shape, dtype in model.given] for _ in range(count)]


def drawn(rng: np.random.Generator, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Draw values of all sizes that a type holds, with its extremes."""
    if dtype.kind == "f":
        return np.asarray(rng.normal(0, 1, shape)).astype(dtype)
    info = np.iinfo(dtype)
    bits = int(rng.integers(0, info.bits + 1))
    low, high = (-(1 << bits) >> 1, 1 << bits >> 1) if info.min else (0, 1 << bits)
    values = rng.integers(low, max(high - 1, low), shape, dtype, endpoint=True)
    return np.asarray(values, dtype).reshape(tuple(shape))


def by_oracle(model: SignalModel, steps: Steps, arena_bytes: int = 1 << 20) -> Steps:
    """Outputs of tflite-micro, run by run."""
    return run_tflm_sequence(model.build(), steps, len(model.outputs), arena_bytes)


def by_meaning(model: SignalModel, steps: Steps) -> Steps:
    """Outputs of the meaning in numpy, run by run."""
    graph = microtir.frontend.from_tflite(model.build()).graph
    assert graph is not None
    names = [tensor.name for tensor in graph.arguments]
    runs = execute_steps(graph, [dict(zip(names, step, strict=True)) for step in steps])
    return [list(outputs.values()) for outputs in runs]


def by_c(model: SignalModel, steps: Steps, **options: Any) -> Steps:
    """Outputs of the C, under sanitizers, run by run."""
    module = microtir.frontend.from_tflite(model.build())
    assert module.graph is not None
    names = [tensor.name for tensor in module.graph.arguments]
    loaded = microtir.host.load(microtir.build(module, **options), sanitize=True)
    return [list(loaded.run(dict(zip(names, step, strict=True))).values()) for step in steps]


def assert_equal(got: Steps, want: Steps, what: object, *, valid: int | None = None) -> None:
    """Check that all runs are equal to the bit.

    Where output `valid` says that the first one is not, tflite-micro leaves it as it was.
    """
    for run, (mine, other) in enumerate(zip(got, want, strict=True)):
        skipped = 0 if valid is None or other[valid] else 1
        for number, (a, b) in enumerate(zip(mine, other, strict=True)):
            if number < skipped:
                continue
            np.testing.assert_array_equal(a, b, err_msg=f"{what}, run {run}, output {number}")


def by_interpreter(model: SignalModel, steps: Steps) -> Steps:
    """Outputs of the functions in TIR, where every sum that does not fit its type is an error."""
    graph = microtir.frontend.from_tflite(model.build()).graph
    assert graph is not None
    node = graph.nodes[0]  # others copy what is remembered
    written = record_of(node.op).function
    assert written is not None
    function = written.build(node, "f")
    kept = dict(initial_states(graph))
    results = []
    for step in steps:
        arrays = [*step, *kept.values()]
        outputs = [np.zeros(tensor.shape, tensor.dtype.value) for tensor in node.outputs]
        scratch = [] if function.scratch is None else [_zeros_of(function.scratch)]
        buffers = [p for p in function.params if isinstance(p, Buffer)]
        given = [
            np.ascontiguousarray(array).reshape(_zeros_of(buffer).shape)
            for array, buffer in zip([*arrays, *outputs, *scratch], buffers, strict=True)
        ]
        Interpreter([function]).run("f", given)
        made = given[len(arrays) : len(arrays) + len(outputs)]
        shaped = [a.reshape(t.shape) for a, t in zip(made, node.outputs, strict=True)]
        results.append(shaped[: len(model.outputs)])
        kept = dict(zip(kept, shaped[len(shaped) - len(kept) :], strict=True))
    return results


def _zeros_of(buffer: Buffer) -> Array:
    shape = tuple(extent for extent in buffer.shape if isinstance(extent, int))
    return np.zeros(shape, buffer.dtype.value)
