"""Prints sample inputs and expected outputs as C arrays."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microtir.artifact import C_TYPES
from microtir.boards.errors import ProjectError
from microtir.dtype import DType
from microtir.module.ir_module import Port
from microtir.projects.options import Samples
from microtir.support.arrays import Array
from microtir.support.encoding import Encoded, c_code

ARBITRARY_SAMPLES = 1
MOST_ARBITRARY = 2**22  # elements

_WIDTH = 92


@dataclass(frozen=True, slots=True)
class SampleArray:
    """A constant C array with the values of all samples of one tensor."""

    name: str
    c_type: str
    elements: int
    bytes: int
    comment: str
    lines: tuple[Encoded, ...]


def arbitrary_samples(inputs: Sequence[Port]) -> Samples:
    """Return a sample of arbitrary values, the same on every machine.

    Raises:
        ProjectError: the inputs are so large that nobody would compile their values as C.
    """
    elements = sum(port.type.elements for port in inputs)
    if elements > MOST_ARBITRARY:
        raise ProjectError(
            f"the inputs have {elements} elements, which is too many for generated samples in C "
            "source",
            where="samples",
            legal=f"at most {MOST_ARBITRARY} elements without your own samples",
            fix="give your own samples",
        )
    generator = random.Random(0)  # documented to give the same numbers in every version
    arrays: dict[str, Array] = {}
    for port in inputs:
        shape = (ARBITRARY_SAMPLES, *port.type.shape)
        shares = np.array([generator.random() for _ in range(math.prod(shape))])
        arrays[port.name] = _scaled(shares, port.type.dtype).reshape(shape)
    return Samples(arrays)


def extreme_samples(inputs: Sequence[Port]) -> Mapping[str, Samples]:
    """Return samples that make conditions go either way: low, high, alternating, arbitrary.

    Raises:
        ProjectError: the inputs are too large, as for `arbitrary_samples`.
    """
    arbitrary = arbitrary_samples(inputs)
    most = np.nextafter(1.0, 0.0)
    extremes: dict[str, Samples] = {}
    for kind, even, odd in (("low", 0.0, 0.0), ("high", most, most), ("alternating", 0.0, most)):
        arrays: dict[str, Array] = {}
        for name, values in arbitrary.inputs.items():
            shares = np.where(np.arange(values.size) % 2, odd, even).reshape(values.shape)
            arrays[name] = _scaled(shares, DType(str(values.dtype)))
        extremes[kind] = Samples(arrays)
    return {**extremes, "arbitrary": arbitrary}


def _scaled(shares: NDArray[np.float64], dtype: DType) -> Array:
    """Turn shares of [0, 1) into values: all of a small integer type, some of a large one."""
    if dtype is DType.BOOL:
        return shares < 0.5
    if dtype.is_float:
        return (shares * 2.0 - 1.0).astype(dtype.value)
    low, high = max(dtype.min, -32768), min(dtype.max, 32767)
    return np.floor(low + shares * (high - low + 1)).astype(dtype.value)


def sample_array(name: str, port: Port, values: Array, steps: int = 1) -> SampleArray:
    """Return the array of one tensor.

    Args:
        name: of the C array.
        port: the input or output.
        values: the first axis counts samples, the second one steps where there are several.
        steps: of each sample.

    Raises:
        ProjectError: other type or other shape.
    """
    dtype, shape = port.type.dtype, port.type.shape
    if values.dtype != np.dtype(dtype.value):
        raise ProjectError(
            f"the samples have the type {values.dtype}",
            where=f"samples of '{port.name}'",
            legal=dtype.value,
        )
    if values.ndim == 0 or values.size != len(values) * steps * port.type.elements:
        raise ProjectError(
            f"the samples have the shape {list(values.shape)}",
            where=f"samples of '{port.name}'",
            legal=f"[samples, {'steps, ' * (steps > 1)}{', '.join(map(str, shape))}]",
        )
    literals = [_literal(value, dtype) for value in values.reshape(-1)]
    extents = "".join(f"[{extent}]" for extent in shape)
    return SampleArray(
        name=name,
        c_type=C_TYPES[dtype],
        elements=len(literals),
        bytes=len(literals) * dtype.bytes,
        comment=f"{len(values)} samples of {f'{steps} steps of ' * (steps > 1)}"
        f"{dtype.value}{extents}",
        lines=tuple(map(c_code, _lines(literals))),
    )


def _literal(value: np.generic, dtype: DType) -> str:
    if dtype.is_float:
        return _real(float(value), "f" if dtype is DType.FLOAT32 else "")
    number = int(value)
    if dtype is DType.UINT32:
        return f"{number}ul"
    if dtype is DType.UINT64:
        return f"{number}ull"
    if dtype in (DType.INT32, DType.INT64):
        suffix = "l" if dtype is DType.INT32 else "ll"
        # The most negative value has no literal: the minus is applied to what does not fit.
        is_lowest = number == dtype.min
        return f"({number + 1}{suffix} - 1)" if is_lowest else f"{number}{suffix}"
    return str(number)


def _real(value: float, suffix: str) -> str:
    if math.isnan(value):
        return f"(0.0{suffix} / 0.0{suffix})"
    if math.isinf(value):
        return f"({'-' if value < 0 else ''}1.0{suffix} / 0.0{suffix})"
    return f"{value!r}{suffix}"


def _lines(literals: list[str]) -> list[str]:
    lines, line = [], ""
    for literal in literals:
        if len(line) + len(literal) > _WIDTH:
            lines.append(line.rstrip())
            line = ""
        line += f"{literal}, "
    return [*lines, line.rstrip()] if line else lines
