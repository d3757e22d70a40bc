"""Proves that every access of a function lies inside its buffer.

An access that cannot be proven stops the build: generated code carries no checks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache

from microtir.errors import TirError
from microtir.tir import build, ir
from microtir.tir.analysis.bounds import declared_range
from microtir.tir.analysis.facts import Facts
from microtir.tir.printer import access_text, expr_text
from microtir.tir.visitor import Replacement, allocations, calls_of, children, substitute, walk


@dataclass(frozen=True, slots=True)
class ProvenAccess:
    """Elements [least, greatest] of a buffer, counted row-major, and what is known there.

    `kind` is "read", "write", or "pass" where a kernel is given a pointer to them.
    """

    buffer: ir.Buffer
    kind: str
    least: int
    greatest: int
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StatedIndex:
    """The element of a buffer that is accessed, as text, and the loops and conditions around it.

    Names of loops and parameters alone occur in the texts: what a Let stands for is written out.
    Numbers do not say all of an index that `is_needed`: the extent of the buffer is a parameter, or
    that of the array to which a pointer is passed; the index has remainders, quotients, minima or
    maxima; the ends of a loop are computed, or there is a condition.
    """

    buffer: ir.Buffer
    kind: str
    index: str
    within: tuple[str, ...]
    is_needed: bool = field(compare=False)


@dataclass(frozen=True, slots=True)
class ProvenLoop:
    """A loop whose variable lies in [low, stop), whatever the loops around it are at."""

    var: str
    low: int
    stop: int


@dataclass(slots=True)
class Proof:
    """The accesses and loops of one function, in the order of its text."""

    accesses: list[ProvenAccess] = field(default_factory=list)
    indices: list[StatedIndex] = field(default_factory=list)
    loops: list[ProvenLoop] = field(default_factory=list)


def proof_of(func: ir.PrimFunc, assuming: tuple[ir.Expr, ...] = ()) -> Proof:
    """Return what the proof of a function says; the kernels that it calls are not proven.

    Buffers with an extent that is a parameter have no accesses there.

    Raises:
        TirError: as for `prove_accesses`.
    """
    proof = Proof()
    _Prover(func, {}, proof).run(assuming)
    return proof


def preconditions(functions: Sequence[ir.PrimFunc]) -> Mapping[ir.PrimFunc, tuple[ir.Expr, ...]]:
    """Return what calls of a kernel prove before it runs; its own proof rests on that."""
    return {
        call.meaning: call.contract.preconditions
        for function in functions
        for call in calls_of(function)
        if isinstance(call, ir.KernelCall)
    }


def prove_accesses(
    func: ir.PrimFunc,
    functions: Mapping[str, ir.PrimFunc] | None = None,
    assuming: tuple[ir.Expr, ...] = (),
) -> None:
    """Prove a function and the kernels that it calls.

    Proven are: every index of a Load, Store or BufferArgument; the region that a kernel reaches
    from a pointer, its contract's regions and its preconditions; the declared ranges of integer
    arguments.  Ranges of an Invoke's arguments are proven if `functions` holds the callee.  A
    kernel may rely on the preconditions of its call; `assuming` are those of `func`.

    Raises:
        TirError: something could not be proven; the error names function, buffer, axis, index
            and what is known there.
    """
    _Prover(func, functions or {}).run(assuming)
    calls = (call for call in calls_of(func) if isinstance(call, ir.KernelCall))
    for kernel, known in dict.fromkeys((c.meaning, c.contract.preconditions) for c in calls):
        _prove_kernel(kernel, known)


# Kernels never change, and many layers call the same ones.
@lru_cache(maxsize=4096)
def _prove_kernel(kernel: ir.PrimFunc, known: tuple[ir.Expr, ...]) -> None:
    prove_accesses(kernel, assuming=known)


_NAME = re.compile(r"[A-Za-z_]\w*")


class _Prover:
    def __init__(
        self,
        func: ir.PrimFunc,
        functions: Mapping[str, ir.PrimFunc],
        proof: Proof | None = None,
    ) -> None:
        self.func = func
        self.functions = functions
        self.facts = Facts()
        self.proof = proof  # is written down where it is asked for
        self.known: list[str] = []  # enclosing loops, names and conditions, for the error
        self.within: list[tuple[str, bool]] = []  # loops and conditions; whether ends are computed
        self.lets: dict[ir.Param, Replacement] = {}

    def run(self, assuming: tuple[ir.Expr, ...]) -> None:
        for param in self.func.params:
            if isinstance(param, ir.Var):
                limits = declared_range(param)
                self.known.append(f"{param.name} in [{limits.low}, {limits.high}]")
        with ExitStack() as stack:
            for condition in assuming:
                stack.enter_context(self.facts.assuming(condition))
                self.known.append(expr_text(condition))
            self.stmt(self.func.body)

    # --- statements ---

    def stmt(self, s: ir.Stmt) -> None:
        match s:
            case ir.Seq(statements):
                for statement in statements:
                    self.stmt(statement)
            case ir.For(var, start, stop, body):
                self.exprs((start, stop))
                if self.proof is not None:
                    low, high = self.facts.interval(start).low, self.facts.interval(stop).high
                    self.proof.loops.append(ProvenLoop(var.name, low, high))
                text = f"{var.name} in [{expr_text(start)}, {expr_text(stop)})"
                plain = [isinstance(e, ir.IntImm) or e in self.func.params for e in (start, stop)]
                around = f"{var.name} in [{self.plain_text(start)}, {self.plain_text(stop)})"
                noting = self._noting(text, (around, not all(plain)))
                with self.facts.loop(var, start, stop), noting:
                    self.stmt(body)
            case ir.If(condition, then, otherwise):
                self.expr(condition)
                text, around = expr_text(condition), self.plain_text(condition)
                with self.facts.assuming(condition), self._noting(text, (around, True)):
                    self.stmt(then)
                if otherwise is not None:
                    noting = self._noting(f"not ({text})", (f"not ({around})", True))
                    with self.facts.assuming(condition, truth=False), noting:
                        self.stmt(otherwise)
            case ir.Let(var, value, body):
                self.expr(value)
                self.lets[var] = value
                with (
                    self.facts.let(var, value),
                    self._noting(f"{var.name} = {expr_text(value)}"),
                ):
                    self.stmt(body)
            case ir.Allocate():
                self.stmt(allocations(s)[1])
            case ir.Store(buffer, indices, value):
                self.exprs((*indices, value))
                self.access(buffer, indices)
                self.note("write", buffer, indices)
            case ir.Invoke():
                self.invoke(s)
            case ir.KernelCall():
                self.kernel(s)
            case ir.ExternCall(function, args):
                self.pointers(function.params, args, function.name)

    def _noting(self, text: str, around: tuple[str, bool] | None = None) -> ExitStack:
        self.known.append(text)
        stack = ExitStack()
        stack.callback(self.known.pop)
        if around is not None:
            self.within.append(around)
            stack.callback(self.within.pop)
        return stack

    def written_out(self, e: ir.Expr) -> ir.Expr:
        """Return an expression without Lets."""
        while _has(e, self.lets):
            e = substitute(e, self.lets)
        return e

    def plain_text(self, e: ir.Expr) -> str:
        """Return an expression without Lets as text, for a proof that is written."""
        return "" if self.proof is None else expr_text(self.written_out(e))

    def exprs(self, items: Iterable[ir.Expr]) -> None:
        for item in items:
            self.expr(item)

    def expr(self, e: ir.Expr) -> None:
        """Prove the loads inside an expression, each under the conditions that guard it."""
        match e:
            case ir.Load(buffer, indices):
                self.exprs(indices)
                self.access(buffer, indices)
                self.note("read", buffer, indices)
            case ir.Select(condition, then, otherwise):
                self.expr(condition)
                self._guarded(condition, then, truth=True)
                self._guarded(condition, otherwise, truth=False)
            case ir.Binary(ir.BinaryOp.AND | ir.BinaryOp.OR as op, a, b):
                self.expr(a)
                self._guarded(a, b, truth=op is ir.BinaryOp.AND)
            case _:
                for part in children(e):
                    self.expr(part)  # type: ignore[arg-type]  # parts of an Expr are Exprs

    def _guarded(self, condition: ir.Expr, e: ir.Expr, *, truth: bool) -> None:
        if any(isinstance(n, ir.Load) for n in walk(e)):
            with self.facts.assuming(condition, truth=truth):
                self.expr(e)

    # --- obligations ---

    def access(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> None:
        for axis, (index, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
            if not self.in_range(index, extent):
                raise self.error(
                    f"index {axis} of {access_text(buffer, indices)} could not be proven to lie"
                    f" in [0, {_dim(extent)})",
                    index,
                )

    def note(
        self,
        kind: str,
        buffer: ir.Buffer,
        indices: tuple[ir.Expr, ...],
        span: ir.Expr | None = None,
        *,
        is_sized: bool = True,
    ) -> None:
        """Add an access to the proof, if it is written: one element, or `span` from there on."""
        if self.proof is None:
            return
        extents = [extent for extent in buffer.shape if isinstance(extent, int)]
        index = self.written_out(_row_major(buffer, indices))
        is_needed = len(extents) < len(buffer.shape) or not is_sized or _is_rounded(index)
        is_needed = is_needed or any(is_computed for _, is_computed in self.within)
        within = tuple(text for text, _ in self.within)
        stated = StatedIndex(buffer, kind, expr_text(index), within, is_needed)
        self.proof.indices.append(stated)
        if len(extents) < len(buffer.shape):
            return
        least = greatest = 0
        for index, extent in zip(indices, extents, strict=True):
            interval = self.facts.interval(index)
            least = least * extent + max(interval.low, 0)
            greatest = greatest * extent + min(interval.high, extent - 1)
        if span is not None:
            last = greatest + self.facts.interval(span).high - 1
            greatest = max(greatest, min(last, math.prod(extents) - 1))
        facts = _about(self.known, indices)
        self.proof.accesses.append(ProvenAccess(buffer, kind, least, greatest, facts))

    def in_range(self, index: ir.Expr, extent: ir.Dim) -> bool:
        interval = self.facts.bounds.of(index)
        if isinstance(extent, int) and interval.low >= 0 and interval.high < extent:
            return True
        limit = build.index(extent)
        return self.facts.prove(build.ge(index, 0)) and self.facts.prove(build.lt(index, limit))

    def error(self, what: str, *about: ir.Expr) -> TirError:
        facts = "; ".join(self.known) or "nothing"
        values = ", ".join(
            f"{expr_text(e)} in [{r.low}, {r.high}]"
            for e in about
            for r in (self.facts.interval(e),)
        )
        return TirError(
            f"{what}; known facts: {facts}; known values: {values}",
            where=f"function '{self.func.name}'",
            legal="an access that loop bounds, conditions and declared ranges keep in bounds",
            fix="add a guard, clip the loop, or declare the range of a parameter",
        )

    # --- calls ---

    def ranges(
        self,
        params: tuple[ir.Param, ...],
        args: Sequence[ir.BufferView | ir.BufferArgument | ir.Expr],
        callee: str,
    ) -> None:
        for param, value in zip(params, args, strict=False):
            if not isinstance(param, ir.Var) or isinstance(
                value, ir.BufferView | ir.BufferArgument
            ):
                continue
            limits = declared_range(param)
            above, below = build.ge(value, limits.low), build.le(value, limits.high)
            if not (self.facts.prove(above) and self.facts.prove(below)):
                raise self.error(
                    f"argument '{param.name}' of '{callee}', {expr_text(value)}, could not be"
                    f" proven to lie in [{limits.low}, {limits.high}]",
                    value,
                )

    def invoke(self, s: ir.Invoke) -> None:
        self.exprs(a for a in s.args if not isinstance(a, ir.BufferView))
        callee = self.functions.get(s.function)
        if callee is not None:
            self.ranges(callee.params, s.args, s.function)

    def pointers(
        self, params: tuple[ir.Param, ...], args: Sequence[ir.BufferArgument | ir.Expr], callee: str
    ) -> dict[ir.Param, Replacement]:
        """Return what a call is given: integers in their ranges, pointers to enough elements."""
        values: dict[ir.Param, Replacement] = {}
        for param, arg in zip(params, args, strict=True):
            if isinstance(arg, ir.BufferArgument):
                self.exprs(arg.indices)
                self.access(arg.buffer, arg.indices)
            else:
                self.expr(arg)
                values[param] = arg
        self.ranges(params, args, callee)
        for param, arg in zip(params, args, strict=True):
            if isinstance(arg, ir.BufferArgument) and isinstance(param, ir.Buffer):
                self.pointer(param, arg, values, callee)
        return values

    def kernel(self, s: ir.KernelCall) -> None:
        values = self.pointers(s.meaning.params, s.args, s.meaning.name)
        for region in (*s.contract.reads, *s.contract.writes):
            self.region(region, values, s.meaning.name)
        for condition in s.contract.preconditions:
            if not self.facts.prove(substitute(condition, values)):
                raise self.error(
                    f"the precondition {expr_text(condition)} of '{s.meaning.name}' could not be"
                    " proven"
                )

    def pointer(
        self,
        param: ir.Buffer,
        arg: ir.BufferArgument,
        values: Mapping[ir.Param, Replacement],
        callee: str,
    ) -> None:
        """Prove that the buffer holds the elements that the parameter spans from the pointer on."""
        offset = _row_major(arg.buffer, arg.indices)
        span = _size(tuple(build.index(d) for d in param.shape), values)
        total = _size(tuple(build.index(d) for d in arg.buffer.shape), {})
        if not self.facts.prove(build.le(build.add(offset, span), total)):
            raise self.error(
                f"'{callee}' accesses {expr_text(span)} elements from"
                f" {access_text(arg.buffer, arg.indices)} on, which could not be proven to end"
                f" before element {expr_text(total)}",
                offset,
            )
        is_sized = all(isinstance(extent, int) for extent in param.shape)
        self.note("pass", arg.buffer, arg.indices, span, is_sized=is_sized)

    def region(
        self,
        region: ir.Region,
        values: Mapping[ir.Param, Replacement],
        callee: str,
    ) -> None:
        for start, extent, dim in zip(
            region.start, region.extent, region.buffer.shape, strict=True
        ):
            first = substitute(start, values)
            limit = substitute(build.index(dim), values)
            inside = build.le(build.add(first, extent), limit)
            if not (self.facts.prove(build.ge(first, 0)) and self.facts.prove(inside)):
                raise self.error(
                    f"the contract of '{callee}' accesses elements outside '{region.buffer.name}'",
                    first,
                )


def _has(e: ir.Expr, names: Container[ir.Param]) -> bool:
    return any(isinstance(node, ir.Var) and node in names for node in walk(e))


def _row_major(buffer: ir.Buffer, indices: Sequence[ir.Expr]) -> ir.Expr:
    offset: ir.Expr = ir.IntImm(0)
    for index, extent in zip(indices, buffer.shape, strict=True):
        offset = build.add(build.mul(offset, build.index(extent)), index)
    return offset


_ROUNDED = (ir.BinaryOp.FLOORDIV, ir.BinaryOp.FLOORMOD, ir.BinaryOp.MIN, ir.BinaryOp.MAX)


def _is_rounded(index: ir.Expr) -> bool:
    return any(isinstance(node, ir.Binary) and node.op in _ROUNDED for node in walk(index))


def _size(shape: tuple[ir.Expr, ...], values: Mapping[ir.Param, Replacement]) -> ir.Expr:
    constant = math.prod(d.value for d in shape if isinstance(d, ir.IntImm))
    size: ir.Expr = build.const(constant)
    for dim in shape:
        if not isinstance(dim, ir.IntImm):
            size = build.mul(size, substitute(dim, values))
    return size


def _dim(extent: ir.Dim) -> str:
    return extent.name if isinstance(extent, ir.Var) else str(extent)


def _about(known: Sequence[str], indices: tuple[ir.Expr, ...]) -> tuple[str, ...]:
    """Return what is known of the names in indices, and of the names in that."""
    names = set(_NAME.findall(" ".join(map(expr_text, indices))))
    facts = [text for text in reversed(known) if _reaches(names, text)]
    return tuple(reversed(facts))


def _reaches(names: set[str], fact: str) -> bool:
    """Return whether a fact has one of the names, to which its own are added then."""
    of_fact = set(_NAME.findall(fact))
    if names.isdisjoint(of_fact):
        return False
    names |= of_fact
    return True
