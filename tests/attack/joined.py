"""Random TFLite models of many operators: cases of one operator each, joined into a graph.

A step is a case that `operator_cases` draws. Where its recipe asks for an input, the step takes the
result of an earlier step of that type as often as not. Moves and a QUANTIZE turn that result into
the shape, the scale and the zero point that the recipe drew: every graph is legal as it is drawn.

Floats are compared within a tolerance, which holds only where a small difference stays small.
Values that are joined therefore go through a TANH, and operators of `_STEEP` take no joined floats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from microtir.operators.common.tflite_schema import BuiltinOperator, Options
from microtir.operators.movement.tflite import ConcatenationOptions, ReshapeOptions
from microtir.writers.tflite import TfliteBuilder
from tests.support.operator_cases import HYBRID, OPERATORS, RECURRENT, Oracle, operator_dtypes
from tests.support.sketch import Array, Case, Quant, Shape, Sketch

_JOINED = 0.75
"""How many of the inputs of a step are joined to earlier results, if there are any that fit."""

_MOST_PARTS = 10  # as many as tflite-micro concatenates
_MOST_ELEMENTS = 4096

_STEEP = frozenset(
    {
        "ARG_MAX", "ARG_MIN", "ATAN2", "CAST", "CEIL", "DIV", "EQUAL", "EXP", "FLOOR", "FLOOR_DIV",
        "FLOOR_MOD", "GREATER", "GREATER_EQUAL", "L2_NORMALIZATION", "LESS", "LESS_EQUAL", "LOG",
        "LOG_SOFTMAX", "NOT_EQUAL", "POW", "QUANTIZE", "ROUND", "RSQRT", "SIGN", "SQRT", "TOPK_V2",
    }
)  # fmt: skip
"""Operators that may turn a small difference of floats into a large one."""


@dataclass(frozen=True)
class Step:
    """One operator of a graph: the case with this seed, of a type."""

    operator: str
    dtype: str
    seed: int

    @property
    def is_compared_with_tflm(self) -> bool:
        """Return whether tflite-micro has this operator with this type."""
        kind = OPERATORS.get(self.operator)
        return kind is not None and kind.oracle(self.dtype) is Oracle.TFLITE_MICRO


@dataclass(frozen=True)
class _Result:
    index: int
    shape: Shape
    dtype: np.dtype[Any]
    quant: Quant | None


@dataclass
class _Growing:
    """A graph to which steps are added."""

    builder: TfliteBuilder = field(default_factory=TfliteBuilder)
    inputs: list[int] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)
    results: list[_Result] = field(default_factory=list)
    tensors: dict[int, _Result] = field(default_factory=dict)
    joined: set[int] = field(default_factory=set)


def draw_steps(seed: int) -> tuple[Step, ...]:
    """Draw three to nine steps, most of them of one type, so that they can be joined."""
    rng = np.random.default_rng([seed, 77])
    kinds = [(name, dtype) for name, dtype in operator_dtypes() if dtype != HYBRID]
    favourite = str(rng.choice(["int8", "int8", "int16", "float32", "int32", "uint8"]))
    of_favourite = [kind for kind in kinds if kind[1] == favourite]
    chosen = []
    for number in range(int(rng.integers(3, 10))):
        pool = of_favourite if rng.random() < 0.8 else kinds
        name, dtype = pool[int(rng.integers(len(pool)))]
        chosen.append(Step(name, dtype, seed * 16 + number))
    return tuple(chosen)


def join(name: str, steps: Sequence[Step]) -> Case:
    """Return the model of a graph of these steps, with values for its inputs.

    Outputs are all results that nothing takes, and some of the others.
    """
    growing = _Growing()
    for number, step in enumerate(steps):
        kind = OPERATORS.get(step.operator) or RECURRENT[step.operator]
        kind.recipe(_JoinedSketch(growing, number, step))
    rng = np.random.default_rng([steps[0].seed, len(steps)])
    outputs = [
        result.index
        for result in growing.results
        if result.index not in growing.joined or rng.random() < 0.3
    ]
    model = growing.builder.build(growing.inputs, outputs)
    return Case(name, model, tuple(growing.values), len(outputs))


class _JoinedSketch(Sketch):
    """A sketch whose operator is added to a graph, and whose inputs may be results of others."""

    def __init__(self, growing: _Growing, number: int, step: Step) -> None:
        rng = np.random.default_rng([step.seed, 5])
        super().__init__(f"step{number}", step.operator, np.dtype(step.dtype), rng)
        self._growing, self._operator, self._count = growing, step.operator, 0
        self._builder, self._inputs, self._values = growing.builder, growing.inputs, growing.values

    def input(self, shape: Shape, quant: Quant | None = None, values: Array | None = None) -> int:
        """Join an earlier result, or add an input of the model; values that are given stay."""
        if values is None and self.chance(_JOINED):
            fitting = [
                result for result in self._growing.results if self._fits(result, shape, quant)
            ]
            if fitting:
                return self._adapted(self.pick(*fitting), shape, quant)
        data = np.asarray(self.values(shape) if values is None else values)
        index = self.tensor("input", shape, data.dtype, quant)
        self._inputs.append(index)
        self._values.append(data)
        return index

    def tensor(
        self, name: str, shape: Shape, dtype: npt.DTypeLike, quant: Quant | None = None,
        data: Array | None = None, *, is_variable: bool = False,
    ) -> int:  # fmt: skip
        """Add a tensor, whose name is that of no other one in the graph."""
        self._count += 1
        unique = f"{self.name}/{name}{self._count}"
        index = super().tensor(unique, shape, dtype, quant, data, is_variable=is_variable)
        self._growing.tensors[index] = _Result(index, shape, np.dtype(dtype), quant)
        return index

    def finish(
        self, inputs: Sequence[int], outputs: Sequence[int] | int,
        options: Options | None = None, version: int | None = None,
    ) -> Case:  # fmt: skip
        """Add the operator; its results can be joined by later steps."""
        results = [outputs] if isinstance(outputs, int) else list(outputs)
        self._builder.operator(self.code, inputs, results, options, version=version)
        self._growing.results += [self._growing.tensors[index] for index in results]
        return Case(self.name, b"", (), len(results))

    def _fits(self, result: _Result, shape: Shape, quant: Quant | None) -> bool:
        elements, wanted = math.prod(result.shape), math.prod(shape)
        return (
            result.dtype == self.dtype
            and (result.quant is None) == (quant is None)
            and not (self.dtype.kind == "f" and self._operator in _STEEP)
            and 0 < elements <= _MOST_ELEMENTS
            and 0 < wanted <= elements * _MOST_PARTS
            and bool(shape)
            and bool(result.shape)
        )

    def _adapted(self, result: _Result, shape: Shape, quant: Quant | None) -> int:
        """Return a tensor with a result's values in another shape and of another scale."""
        self._growing.joined.add(result.index)
        have, want = math.prod(result.shape), math.prod(shape)
        now, own = result.index, result.quant
        if result.shape != shape:
            now = self._reshaped(now, (have,), own)
            if (parts := -(-want // have)) > 1:
                now = self._apply("CONCATENATION", [now] * parts, (parts * have,), own,
                                  ConcatenationOptions(0))  # fmt: skip
            if parts * have != want:
                place = [self.ints("begin", 0), self.ints("size", want)]
                now = self._apply("SLICE", [now, *place], (want,), own)
            now = self._reshaped(now, shape, own)
        if quant != own:
            now = self._apply("QUANTIZE", [now], shape, quant)
        return self._apply("TANH", [now], shape, None) if self.dtype.kind == "f" else now

    def _reshaped(self, index: int, shape: Shape, quant: Quant | None) -> int:
        inputs = [index, self.ints("shape", *shape)]
        return self._apply("RESHAPE", inputs, shape, quant, ReshapeOptions(shape))

    def _apply(
        self, operator: str, inputs: Sequence[int], shape: Shape, quant: Quant | None,
        options: Options | None = None,
    ) -> int:  # fmt: skip
        result = self.tensor(operator.lower(), shape, self.dtype, quant)
        self._builder.operator(BuiltinOperator[operator], inputs, [result], options)
        return result
