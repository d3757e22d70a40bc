"""Draw programs that compute with the shape of a tensor, and what they give by numpy.

A writer of a file format makes a model of one; see `test_shape_programs.py` of both formats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[Any]

SHAPES = ((1, 4, 6), (1,), (1, 3, 2, 5), (2, 3))
MOST = 1_000_000
"""No number is larger, so that nothing wraps in either format."""

BINARY: Mapping[str, Callable[[Ints, Ints], Ints]] = MappingProxyType(
    {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "floor_div": np.floor_divide,
        "mod": np.mod,
        "max": np.maximum,
        "min": np.minimum,
    }
)
REDUCED: Mapping[str, Callable[..., Ints]] = MappingProxyType(
    {"prod": np.prod, "sum": np.sum, "max": np.max, "min": np.min}
)


@dataclass(frozen=True)
class Step:
    """An operator: values that it takes, by number, its attributes, and what it gives."""

    kind: str
    inputs: tuple[int, ...]
    given: Mapping[str, Any]
    results: tuple[Ints, ...]


@dataclass
class ShapeProgram:
    """Steps on the shape of a tensor of zeros, which is value 0."""

    rng: np.random.Generator
    dtype: type[np.integer[Any]]
    shape: tuple[int, ...] = ()
    steps: list[Step] = field(default_factory=list)
    values: list[Ints] = field(default_factory=list)

    def add(
        self, kind: str, inputs: tuple[int, ...], *results: npt.ArrayLike, **given: object
    ) -> None:
        """Add a step, unless its numbers become too large."""
        arrays = tuple(np.asarray(result) for result in results)
        if all(np.abs(array.astype(np.float64)).max(initial=0) <= MOST for array in arrays):
            self.steps.append(Step(kind, inputs, given, arrays))
            self.values.extend(arrays)

    def any_like(self, accepts: Callable[[Ints], bool]) -> int:
        """Return the number of a value that fits; there is one."""
        fitting = [n for n, value in enumerate(self.values) if accepts(value)]
        return int(self.rng.choice(fitting))


def drawn(seed: int, dtype: type[np.integer[Any]]) -> ShapeProgram:
    """Return a random program whose shapes have that type."""
    program = ShapeProgram(np.random.default_rng(seed), dtype)
    program.shape = SHAPES[program.rng.integers(len(SHAPES))]
    program.add("shape", (), np.array(program.shape, dtype))
    kinds = sorted(_DRAWN)
    for _ in range(program.rng.integers(1, 10)):
        kind = kinds[program.rng.integers(len(kinds))]
        place = int(program.rng.integers(len(program.values)))
        _DRAWN[kind](program, place, program.values[place])
    return program


def _take(p: ShapeProgram, at: int, value: Ints) -> None:
    if value.ndim and value.shape[0]:
        shape = ((), (1,), (2,), (0,), (2, 1))[p.rng.integers(5)]
        places = p.rng.integers(0, value.shape[0], shape).astype(p.dtype)
        p.add("take", (at,), np.take(value, places, 0), places=places)


def _part(p: ShapeProgram, at: int, value: Ints) -> None:
    if value.ndim == 1:
        begin, end = (int(n) for n in p.rng.integers(-len(value), len(value) + 2, 2))
        stride = int(p.rng.choice([1, 1, -1, 2]))
        p.add("part", (at,), value[begin:end:stride], begin=begin, end=end, stride=stride)


def _pick(p: ShapeProgram, at: int, value: Ints) -> None:
    if value.ndim == 1 and value.size:
        place = int(p.rng.integers(-len(value), len(value)))
        p.add("pick", (at,), value[place], place=place)


def _slice(p: ShapeProgram, at: int, value: Ints) -> None:
    if value.ndim:
        begin = [int(p.rng.integers(0, extent + 1)) for extent in value.shape]
        end = [int(p.rng.integers(b, n + 1)) for b, n in zip(begin, value.shape, strict=True)]
        p.add("slice", (at,), value[tuple(map(slice, begin, end))], begin=begin, end=end)


def _join(p: ShapeProgram, at: int, value: Ints) -> None:
    if value.ndim == 1 and value.size <= 20:
        other = p.any_like(lambda v: v.ndim == 1 and v.dtype == value.dtype and v.size <= 20)
        p.add("join", (at, other), np.concatenate([value, p.values[other]]))


def _stack(p: ShapeProgram, at: int, value: Ints) -> None:
    if value.ndim <= 1 and value.size <= 20:
        other = p.any_like(lambda v: v.shape == value.shape and v.dtype == value.dtype)
        p.add("stack", (at, other), np.stack([value, p.values[other]]))


def _reduce(p: ShapeProgram, at: int, value: Ints) -> None:
    name = sorted(REDUCED)[p.rng.integers(len(REDUCED))]
    if value.ndim and (value.size or name in ("prod", "sum")):
        axis, keep = int(p.rng.integers(-value.ndim, value.ndim)), bool(p.rng.integers(2))
        result = REDUCED[name](value, axis=axis, keepdims=keep).astype(value.dtype)
        p.add("reduce", (at,), result, name=name, axis=axis, keep=keep)


def _binary(p: ShapeProgram, at: int, value: Ints) -> None:
    name = sorted(BINARY)[p.rng.integers(len(BINARY))]
    other = p.any_like(
        lambda v: v.dtype == value.dtype and (v.shape in (value.shape, ()) or value.shape == ())
    )
    second = p.values[other]
    if name not in ("floor_div", "mod") or (second.size and second.all()):
        p.add("binary", (at, other), BINARY[name](value, second), name=name)


def _cast(p: ShapeProgram, at: int, value: Ints) -> None:
    to = np.int64 if value.dtype == np.int32 else np.int32
    p.add("cast", (at,), value.astype(to), to=to)


def _range(p: ShapeProgram, at: int, value: Ints) -> None:
    if value.ndim == 0 and 0 <= value < 12:
        p.add("range", (at,), np.arange(int(value), dtype=value.dtype))


def _reshape(p: ShapeProgram, at: int, value: Ints) -> None:
    shapes = [(value.size,), (1, value.size), *([(-1,)] * bool(value.size))]
    shapes += [()] * (value.size == 1)
    shape = shapes[p.rng.integers(len(shapes))]
    p.add("reshape", (at,), value.reshape(shape), shape=shape)


def _squeeze(p: ShapeProgram, at: int, value: Ints) -> None:
    if 1 in value.shape:
        p.add("squeeze", (at,), np.squeeze(value))


def _unsqueeze(p: ShapeProgram, at: int, value: Ints) -> None:
    if value.ndim < 3:
        axis = int(p.rng.integers(-value.ndim - 1, value.ndim + 1))
        p.add("unsqueeze", (at,), np.expand_dims(value, axis), axis=axis)


def _halves(p: ShapeProgram, at: int, value: Ints) -> None:
    if value.ndim == 1 and value.size and value.size % 2 == 0:
        p.add("halves", (at,), *np.split(value, 2))


def _negate(p: ShapeProgram, at: int, value: Ints) -> None:
    p.add("negate", (at,), -value)


def _tile(p: ShapeProgram, at: int, value: Ints) -> None:
    if value.ndim == 1 and value.size <= 10:
        p.add("tile", (at,), np.tile(value, 2), times=2)


def _fill(p: ShapeProgram, at: int, value: Ints) -> None:
    if value.shape == (2,) and (value >= 0).all() and value.prod() < 20 and value.dtype == p.dtype:
        p.add("fill", (at,), np.full(tuple(value), 7, p.dtype), number=7)


def _scale(p: ShapeProgram, at: int, value: Ints) -> None:
    """Halve as an upsampling by 0.5 does: by floats."""
    if value.size and (value >= 0).all():
        p.add("scale", (at,), np.trunc(value * 0.5).astype(value.dtype), factor=0.5)


_DRAWN: Mapping[str, Callable[[ShapeProgram, int, Ints], None]] = MappingProxyType(
    {
        draw.__name__[1:]: draw
        for draw in (
            _take, _part, _pick, _slice, _join, _stack, _reduce, _binary, _cast, _range, _reshape,
            _squeeze, _unsqueeze, _halves, _negate, _tile, _fill, _scale,
        )
    }
)  # fmt: skip


def shown(program: ShapeProgram) -> list[int]:
    """Return the numbers of the last values that hold something: those a model gives back."""
    numbers = [n for n, value in enumerate(program.values) if value.size and value.ndim < 4]
    return numbers[-4:]
