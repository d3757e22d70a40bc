"""Writes the function that counts the elements of inputs that calibration did not see."""

from __future__ import annotations

from collections.abc import Iterator

from microtir.dtype import DType
from microtir.module.ir_module import ModelInfo, Port, SeenRange
from microtir.tir import build, ir


def guarded_ports(model: ModelInfo) -> Iterator[tuple[Port, SeenRange]]:
    """Yield the inputs that are looked through, each with the values that are not counted."""
    for port in model.inputs:
        if port.seen is not None:
            yield port, port.seen


def unseen_counter(model: ModelInfo) -> ir.PrimFunc | None:
    """Return the function: it takes each input, with a place for its count; None without any."""
    params: list[ir.Param] = []
    loops: list[ir.Stmt] = []
    count, none = ir.Buffer("count", (), DType.UINT32, ir.Scope.LOCAL), build.const(0, DType.UINT32)
    for port, seen in guarded_ports(model):
        values = ir.Buffer(port.c_name, (port.type.elements,), port.type.dtype)
        counted = ir.Buffer(f"{port.c_name}_count", (1,), DType.UINT32)
        i, value = ir.Var("i", DType.INT32), ir.Var("value", values.dtype)
        one = build.select(_is_unseen(value, seen), build.const(1, DType.UINT32), none)
        step = ir.Store(count, (), build.add(ir.Load(count, ()), one))
        body = ir.Let(value, ir.Load(values, (i,)), step)
        loops.append(ir.Store(count, (), none))
        loops.append(ir.For(i, build.const(0), build.const(port.type.elements), body))
        loops.append(ir.Store(counted, (build.const(0),), ir.Load(count, ())))
        params += [values, counted]
    counting = ir.Allocate(count, build.seq(loops))
    return ir.PrimFunc("count_unseen", tuple(params), counting) if params else None


def _is_unseen(value: ir.Var, seen: SeenRange) -> ir.Expr:
    """Return the condition that a value is counted."""
    dtype = value.dtype
    low, high = (build.literal(end, dtype) for end in (seen.low, seen.high))
    if dtype.is_float:  # a NaN is nowhere inside
        inside = build.logical_and(build.ge(value, low), build.le(value, high))
        return build.logical_not(inside)
    # A comparison that a type can never meet warns.
    sides = [build.lt(value, low)] * (seen.low > dtype.min)
    return build.logical_or(*sides, *[build.gt(value, high)] * (seen.high < dtype.max))
