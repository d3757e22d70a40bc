"""Small TFLite models that keep something from one run to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from microtir.frontend.tflite_variables import CallOnceOptions, VarHandleOptions
from microtir.operators.arithmetic.tflite import AddOptions
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.movement.tflite import (
    ConcatenationOptions,
    ReshapeOptions,
    StridedSliceOptions,
)
from microtir.writers.tflite import TfliteBuilder

Code = BuiltinOperator
Array = npt.NDArray[Any]


def handle(builder: TfliteBuilder, name: str = "sum") -> int:
    """Return a handle of the resource `name`."""
    index = builder.tensor(f"{name}_handle", (), "resource")
    builder.operator(Code.VAR_HANDLE, [], [index], VarHandleOptions("", name))
    return index


def initialised(builder: TfliteBuilder, value: Array, name: str = "sum") -> None:
    """Let another subgraph give the resource its first value."""
    init = builder.subgraph("init")
    variable = handle(init, name)
    first = init.tensor("first", value.shape, value.dtype, value)
    init.operator(Code.ASSIGN_VARIABLE, [variable, first], [])
    init.define([], [])
    builder.operator(Code.CALL_ONCE, [], [], CallOnceOptions(init.number))


def running_sum(initial: Array | None = None) -> bytes:
    """Return a model that adds up what it is given; its output is twice the sum before a run."""
    builder = TfliteBuilder()
    x = builder.tensor("x", (1, 2), np.float32)
    if initial is not None:
        initialised(builder, initial)
    variable = handle(builder)
    old, new, out = (builder.tensor(name, (1, 2), np.float32) for name in ("old", "new", "out"))
    builder.operator(Code.READ_VARIABLE, [variable], [old])
    builder.operator(Code.ADD, [old, x], [new], AddOptions())
    builder.operator(Code.ASSIGN_VARIABLE, [variable, new], [])
    builder.operator(Code.ADD, [old, old], [out], AddOptions())
    return builder.build([x], [out])


@dataclass(frozen=True)
class Kind:
    """A type of variables; those that no operator adds up are moved only."""

    dtype: npt.DTypeLike
    scale: float | None = None
    zero_point: int = 0
    adds: bool = True

    @property
    def quantization(self) -> dict[str, Any]:
        if self.scale is None:
            return {}
        return {"scales": [self.scale], "zero_points": [self.zero_point]}


_KINDS = {
    "float32": Kind(np.float32),
    "int8": Kind(np.int8, 0.25, -7),
    "int16": Kind(np.int16, 0.125),
    "int32": Kind(np.int32),
    "bool": Kind(np.bool_, adds=False),
}
KINDS: dict[str, tuple[Kind, ...]] = {
    **{name: (kind,) for name, kind in _KINDS.items()},
    "mixed": tuple(_KINDS.values()),
}


def random_model(seed: int, kinds: str) -> bytes:
    """Return a model with one to three variables: rings, sums and delays, read before or after.

    Each has an input and an output of its own, and every second one a first value.
    """
    generator = np.random.default_rng(seed)
    builder, inputs, outputs = TfliteBuilder(), [], []
    variables, cells = [], []
    for number in range(int(generator.integers(1, 4))):
        kind = KINDS[kinds][int(generator.integers(len(KINDS[kinds])))]
        choice = [_ring, _delay, *([_total] if kind.adds else [])]
        cells.append(choice[int(generator.integers(len(choice)))])
        width, slots = (int(n) for n in generator.integers(1, 6, 2))
        shape = (1, slots if cells[-1] is _ring else 1, width)
        variables.append(_Variable(builder, kind, number, shape))
        if generator.integers(2):
            first = values_of(generator, kind.dtype, shape)
            initialised(builder, first, variables[-1].name)
    for cell, variable in zip(cells, variables, strict=True):
        x = variable.tensor("x", (1, 1, variable.shape[-1]))
        variable.handle = handle(builder, variable.name)
        outputs.append(cell(variable, x, bool(generator.integers(2))))
        inputs.append(x)
    return builder.build(inputs, outputs)


def values_of(generator: np.random.Generator, dtype: npt.DTypeLike, shape: Sequence[int]) -> Array:
    """Return small random values."""
    values = generator.integers(-9, 10, shape)
    return values > 0 if np.dtype(dtype) == np.bool_ else values.astype(dtype)


@dataclass
class _Variable:
    builder: TfliteBuilder
    kind: Kind
    number: int
    shape: tuple[int, int, int]
    handle: int = 0

    @property
    def name(self) -> str:
        return f"kept{self.number}"

    def tensor(self, name: str, shape: Sequence[int] | None = None) -> int:
        """Return a tensor of the variable's type."""
        whole = self.shape if shape is None else tuple(shape)
        named = f"{name}{self.number}"
        return self.builder.tensor(named, whole, self.kind.dtype, **self.kind.quantization)

    def read(self, name: str) -> int:
        value = self.tensor(name)
        self.builder.operator(Code.READ_VARIABLE, [self.handle], [value])
        return value

    def assign(self, value: int) -> None:
        self.builder.operator(Code.ASSIGN_VARIABLE, [self.handle, value], [])


Cell = Callable[[_Variable, int, bool], int]


def _ring(variable: _Variable, x: int, reads_after: bool) -> int:
    """Drop the oldest row and append the input; give all rows, before or behind the assignment."""
    _, slots, width = variable.shape
    builder, old = variable.builder, variable.read("old")
    longer, newer = variable.tensor("longer", (1, slots + 1, width)), variable.tensor("newer")
    builder.operator(Code.CONCATENATION, [old, x], [longer], ConcatenationOptions(1))
    corners = [(0, 1, 0), (0, 0, 0), (1, 1, 1)]
    bounds = [
        builder.tensor(f"bounds{variable.number}_{n}", (3,), np.int32, np.array(c, np.int32))
        for n, c in enumerate(corners)
    ]
    options = StridedSliceOptions(begin_mask=0b101, end_mask=0b111)
    builder.operator(Code.STRIDED_SLICE, [longer, *bounds], [newer], options)
    variable.assign(newer)
    rows, count = (variable.read("again"), slots) if reads_after else (longer, slots + 1)
    out = variable.tensor("out", (1, count * width))
    builder.operator(Code.RESHAPE, [rows], [out], ReshapeOptions((1, count * width)))
    return out


def _total(variable: _Variable, x: int, reads_after: bool) -> int:
    """Add the input; give twice the sum, before or behind the assignment."""
    builder, old = variable.builder, variable.read("old")
    new, out = variable.tensor("new"), variable.tensor("out")
    builder.operator(Code.ADD, [old, x], [new], AddOptions())
    variable.assign(new)
    value = variable.read("again") if reads_after else old
    builder.operator(Code.ADD, [value, value], [out], AddOptions())
    return out


def _delay(variable: _Variable, x: int, reads_after: bool) -> int:
    """Keep the input; give the one before, or this one by way of the variable."""
    builder, old = variable.builder, variable.read("old")
    _, _, width = variable.shape
    variable.assign(x)
    value = variable.read("again") if reads_after else old
    out = variable.tensor("out", (1, width))
    builder.operator(Code.RESHAPE, [value], [out], ReshapeOptions((1, width)))
    return out
