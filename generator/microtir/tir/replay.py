"""Runs a function before and after a pass on random inputs and compares what they store.

A row range is cut into windows at the top, in the middle and at the
bottom, so that borders are covered while the run stays short.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from microtir.dtype import DType
from microtir.errors import InterpreterError, TirError
from microtir.tir import ir
from microtir.tir.analysis.bounds import Bounds, declared_range
from microtir.tir.analysis.interval import Interval
from microtir.tir.interpreter import Interpreter, StepLimitError
from microtir.tir.visitor import allocations, buffers_read

_EXTENT_LIMIT = 8  # of parameters that are no rows: how far above its lowest value one is tried
# Wide integers start small, so that sums do not overflow by accident, and get smaller where the
# program is undefined on such values (e.g. because they are indices).
_MAGNITUDES = (100, 3, 1, 0)


class ReplayOutcome(Enum):
    EQUAL = "equal"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of a check: `steps` were run, or are estimated where `reason` prevented it."""

    outcome: ReplayOutcome
    steps: int
    reason: str = ""


def check_pass(
    before: ir.PrimFunc,
    after: ir.PrimFunc,
    name: str = "pass",
    *,
    seed: int = 0,
    max_steps: int = 10**6,
    functions: Sequence[ir.PrimFunc] = (),
) -> Replay:
    """Compare two versions of a function.

    Args:
        before: the function that the pass was given.
        after: what the pass made of it.
        name: the pass, for the error.
        seed: of the random inputs.
        max_steps: of the interpreter, for all runs of one version together.
        functions: what the function invokes.

    Raises:
        TirError: the outputs differ, or only `after` is undefined.
    """
    if before is after:
        return Replay(ReplayOutcome.EQUAL, 0)
    windows = list(_windows(before, after, max_steps))
    if not windows:
        steps = _estimate(before, after, _smallest(before))
        return Replay(ReplayOutcome.SKIPPED, steps, f"about {steps} steps, {max_steps} allowed")
    generator = np.random.default_rng(seed)
    total, undefined = 0, ""
    for values in windows:
        result = _compare(before, after, name, values, generator, max_steps, functions)
        total += result.steps
        undefined = undefined or result.reason
    if undefined:
        return Replay(ReplayOutcome.SKIPPED, total, undefined)
    return Replay(ReplayOutcome.EQUAL, total)


# --- values of integer parameters ---------------------------------------------------------------


def _smallest(func: ir.PrimFunc) -> dict[ir.Var, int]:
    """Return one row, and the lowest value of everything else."""
    values = {p: declared_range(p).low for p in func.params if isinstance(p, ir.Var)}
    rows = func.row_range
    if rows is not None:
        values[rows.stop] = min(values[rows.start] + 1, declared_range(rows.stop).high)
    return values


def _windows(
    before: ir.PrimFunc, after: ir.PrimFunc, max_steps: int
) -> Iterator[dict[ir.Var, int]]:
    """Yield values of the integer parameters for each run; none if a single row takes too long."""
    values = _smallest(before)
    rows = before.row_range
    if _estimate(before, after, values) > max_steps:
        return
    others = [v for v in values if rows is None or v not in (rows.start, rows.stop)]
    for var in others:
        limits = declared_range(var)
        values[var] = min(limits.high, limits.low + _EXTENT_LIMIT)
    if others and _estimate(before, after, values) > max_steps:
        values = _smallest(before)
    if rows is None:
        yield values
        return
    low, high = declared_range(rows.start).low, declared_range(rows.stop).high
    count = max(1, max_steps // (3 * _estimate(before, after, values)))
    if high - low <= 3 * count:
        yield {**values, rows.start: low, rows.stop: high}
        return
    for start in (low, (low + high - count) // 2, high - count):
        yield {**values, rows.start: start, rows.stop: start + count}


def _estimate(before: ir.PrimFunc, after: ir.PrimFunc, values: Mapping[ir.Var, int]) -> int:
    """Return steps of the longer version; `values` belongs to the parameters of `before`."""
    renamed = {
        new: values[old]
        for old, new in zip(before.params, after.params, strict=True)
        if isinstance(old, ir.Var) and isinstance(new, ir.Var)
    }
    return max(estimate_steps(before, values), estimate_steps(after, renamed))


def estimate_steps(func: ir.PrimFunc, values: Mapping[ir.Var, int]) -> int:
    """Return the upper bound of the interpreter's steps for given integer parameters.

    A loop whose bounds are loaded from memory counts as one iteration: the step limit of the run
    has to decide about it.
    """
    bounds = Bounds({v: Interval(n, n) for v, n in values.items()})
    return 1 + _steps(func.body, bounds)


def _steps(s: ir.Stmt, bounds: Bounds) -> int:
    match s:
        case ir.Seq(statements):
            return sum(_steps(t, bounds) for t in statements)
        case ir.For(var, start, stop, body):
            low, high = bounds.of(start).low, bounds.of(stop).high
            if low >= high:
                return 0
            bounds.ranges[var] = Interval(low, high - 1)
            is_known = not (buffers_read(start) or buffers_read(stop))
            return (high - low if is_known else 1) * (1 + _steps(body, bounds))
        case ir.If(_, then, otherwise):
            rest = 0 if otherwise is None else _steps(otherwise, bounds)
            return max(_steps(then, bounds), rest)
        case ir.Let(var, value, body):
            if not value.dtype.is_float:
                bounds.ranges[var] = bounds.of(value)
            return _steps(body, bounds)
        case ir.Allocate():
            return _steps(allocations(s)[1], bounds)
        case ir.KernelCall(meaning):
            return estimate_steps(meaning, {})
        case ir.Invoke() | ir.ExternCall():
            return 1
        case _:
            return 0


# --- one run ------------------------------------------------------------------------------------


def _compare(
    before: ir.PrimFunc,
    after: ir.PrimFunc,
    name: str,
    values: Mapping[ir.Var, int],
    generator: np.random.Generator,
    max_steps: int,
    functions: Sequence[ir.PrimFunc],
) -> Replay:
    reason = ""
    by_name = {v.name: n for v, n in values.items()}
    for magnitude in _MAGNITUDES:
        args = _arguments(before, values, generator, magnitude)
        expected = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        try:
            interpreter = Interpreter([*functions, before], max_steps=max_steps)
            steps = interpreter.run(before.name, expected)
        except StepLimitError as error:
            return Replay(ReplayOutcome.SKIPPED, max_steps, str(error))
        except InterpreterError as error:
            reason = f"undefined before the pass: {error}"
            continue
        actual = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        try:
            # A pass may add steps (copies of a loop count anew), but not without end.
            Interpreter([*functions, after], max_steps=4 * max_steps).run(after.name, actual)
        except InterpreterError as error:
            raise TirError(
                f"pass '{name}' made the function undefined for {by_name}: {error}",
                where=f"function '{before.name}'",
            ) from None
        _require_equal(before, name, by_name, expected, actual)
        return Replay(ReplayOutcome.EQUAL, steps)
    return Replay(ReplayOutcome.SKIPPED, 0, reason)


def _arguments(
    func: ir.PrimFunc, values: Mapping[ir.Var, int], generator: np.random.Generator, magnitude: int
) -> list[ir.Array | int]:
    args: list[ir.Array | int] = []
    for param in func.params:
        if isinstance(param, ir.Buffer):
            shape = [values[d] if isinstance(d, ir.Var) else d for d in param.shape]
            limit = None if param.dtype.bits == 8 and magnitude == _MAGNITUDES[0] else magnitude
            args.append(random_array(generator, shape, param.dtype, limit))
        else:
            args.append(values[param])
    return args


def random_array(
    generator: np.random.Generator, shape: Sequence[int], dtype: DType, limit: int | None = None
) -> ir.Array:
    """Draw elements of a type: floats in [-2, 2], integers in [-limit, limit] and the type."""
    if dtype.is_float:
        return generator.uniform(-2.0, 2.0, size=tuple(shape)).astype(dtype.value)
    low = dtype.min if limit is None else max(dtype.min, -limit)
    high = dtype.max if limit is None else min(dtype.max, limit)
    values = generator.integers(low, high, size=tuple(shape), endpoint=True, dtype=np.int64)
    return values.astype(dtype.value)


def _require_equal(
    func: ir.PrimFunc,
    name: str,
    values: Mapping[str, int],
    expected: Sequence[ir.Array | int],
    actual: Sequence[ir.Array | int],
) -> None:
    for param, a, b in zip(func.params, expected, actual, strict=True):
        if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
            continue
        if a.tobytes() == b.tobytes():
            continue
        flat_a, flat_b = a.reshape(-1), b.reshape(-1)
        first = next(i for i in range(flat_a.size) if flat_a[i].tobytes() != flat_b[i].tobytes())
        position = tuple(int(i) for i in np.unravel_index(first, a.shape or (1,)))
        raise TirError(
            f"pass '{name}' changed a result for {dict(values)}: '{param.name}' at {position}"
            f" is {flat_b[first]} instead of {flat_a[first]}",
            where=f"function '{func.name}'",
        )
