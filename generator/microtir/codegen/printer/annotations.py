"""Writes what was proven of functions and loops as ACSL, in comments that Frama-C reads."""

from __future__ import annotations

import math
from collections.abc import Sequence

from microtir.codegen.printer.layout import indent
from microtir.codegen.printer.names import ScopedNames
from microtir.tir import ir
from microtir.tir.analysis.access import ProvenAccess, proof_of
from microtir.tir.analysis.bounds import Bounds, declared_range
from microtir.tir.visitor import buffers_written, walk

_PARTS = 32
_REDUCTION = 64  # turns of a loop over sums that Eva takes one by one


def contract_lines(
    function: ir.PrimFunc,
    names: ScopedNames,
    written: frozenset[ir.Buffer],
    assuming: tuple[ir.Expr, ...] = (),
) -> list[str]:
    """Return what callers grant a function, and what it writes.

    Args:
        function: whose parameters are in `names`.
        names: those of the C function.
        written: the parameters that it or a callee writes to.
        assuming: what calls prove before it runs.
    """
    accesses = proof_of(function, assuming).accesses
    clauses: list[str] = []
    assigned: list[str] | None = []
    for parameter in function.params:
        name = names.without_use(parameter)
        if isinstance(parameter, ir.Var):
            limits = declared_range(parameter)
            clauses.append(f"requires {limits.low} <= {name} <= {limits.high};")
            continue
        regions = {False: _region(parameter, accesses, ("read", "pass", "write")),
                   True: _region(parameter, accesses, ("write", "pass"))}  # fmt: skip
        if region := regions[False]:
            valid = "valid" if parameter in written else "valid_read"
            clauses.append(f"requires \\{valid}({name} + ({region}));")
        if parameter in written and assigned is not None:
            region = regions[True]
            assigned = [*assigned, f"{name}[{region}]"] if region else None
    if assigned is not None:
        clauses.append(f"assigns {', '.join(assigned) or chr(92) + 'nothing'};")
    return comment(clauses)


def loop_lines(
    s: ir.For, names: ScopedNames, bounds: Bounds, locals_outside: frozenset[ir.Buffer]
) -> list[str]:
    """Return invariant, writes and variant of a loop, whose body has been printed.

    `locals_outside` are the local buffers that live around it.
    """
    name = names.without_use(s.var)
    start, stop = bounds.of(s.start), bounds.of(s.stop)
    highest = max(start.high, stop.high)
    clauses = [f"loop invariant {start.low} <= {name} <= {highest};"]
    assigned: list[str] | None = [name]
    is_reduction = False
    for buffer in buffers_written(s.body):
        is_local = buffer.scope is ir.Scope.LOCAL
        if is_local and buffer not in locals_outside:
            continue
        is_reduction |= is_local and not buffer.shape
        region = _whole(buffer)
        target = names.without_use(buffer)
        if assigned is not None:
            assigned = None if region is None else [*assigned, target + region]
    if assigned is not None:
        clauses.append(f"loop assigns {', '.join(assigned)};")
    turns = stop.high - start.low
    if is_reduction and 0 < turns <= _REDUCTION:
        clauses.append(f"loop unroll {turns};")
    clauses.append(f"loop variant {highest} - {name};")
    return comment(clauses)


def split_lines(s: ir.Let, operand: str, name: str, bounds: Bounds) -> tuple[list[str], list[str]]:
    """Return the cases that a prover takes one by one before and after a name is computed.

    The zero bits above a number are exact between two powers of two; the steps towards a
    reciprocal do not overflow where the denominator is known to one part in 32.

    Args:
        s: what names the value.
        operand: the text of the number whose zero bits are counted, else empty.
        name: the name of the value.
        bounds: the ranges of what is visible.
    """
    before: list[str] = []
    if operand:
        cases = (f"{1 << bit} <= {operand} < {1 << (bit + 1)}" for bit in range(31))
        before = comment([f"assert magnitude: {' || '.join(cases)};"])
    after: list[str] = []
    if _is_denominator(s):
        whole = bounds.of(s.value)
        step = -(-(whole.high + 1 - whole.low) // _PARTS)
        edges = (whole.low + step * part for part in range(_PARTS))
        cases = (f"{low} <= {name} < {low + step}" for low in edges)
        after = comment([f"assert parts: {' || '.join(cases)};"])
    return before, after


def counted(s: ir.Let) -> ir.Expr | None:
    """Return the number whose zero bits a name is for, without a cast; None for other names."""
    match s.value:
        case ir.Call(ir.Intrinsic.COUNT_LEADING_ZEROS, (ir.Cast(_, value),)):
            return value
        case ir.Call(ir.Intrinsic.COUNT_LEADING_ZEROS, (value,)):
            return value
        case _:
            return None


def comment(clauses: Sequence[str]) -> list[str]:
    """Return clauses as one annotation."""
    first, *rest = clauses
    if not rest:
        return [f"/*@ {first} */"]
    return [f"/*@ {first}", *indent(rest), "*/"]


def _is_denominator(s: ir.Let) -> bool:
    """Return whether several doubling products in what follows take the value."""
    return (
        s.value.dtype.is_int
        and sum(
            isinstance(node, ir.Call)
            and node.intrinsic is ir.Intrinsic.SATURATING_ROUNDING_DOUBLING_HIGH_MUL
            and s.var in node.args
            for node in walk(s.body)
        )
        >= 3
    )


def _region(buffer: ir.Buffer, accesses: Sequence[ProvenAccess], kinds: Sequence[str]) -> str:
    """Return the elements of a parameter that proven accesses of some kinds reach."""
    reached = [one for one in accesses if one.buffer is buffer and one.kind in kinds]
    if not reached:
        return ""
    return f"{min(one.least for one in reached)} .. {max(one.greatest for one in reached)}"


def _whole(buffer: ir.Buffer) -> str | None:
    """Return the elements of a buffer behind its name; None if their number is a parameter."""
    if not buffer.shape and buffer.scope is ir.Scope.LOCAL:
        return ""
    extents = [extent for extent in buffer.shape if isinstance(extent, int)]
    if len(extents) < len(buffer.shape):
        return None
    return f"[0 .. {math.prod(extents) - 1}]"
