"""May iterations change their order?  Dependences between the accesses of a loop nest.

Two accesses of one element, at least one of them a store, must keep their order.  A reordering is
illegal if it turns round such a pair: some iteration with a lower index of an outer loop and a
higher index of an inner loop touches the same element as a later one, and the two loops change
places (Allen and Kennedy's direction vector `(<, >)`).  Whether such a pair exists is a question
about integers; what cannot be shown impossible counts as possible.

Reductions are the exception.  `a = a + v` may be done in any order if the arithmetic is exact.
Integer arithmetic is, as long as no partial sum overflows: true of every order if the magnitudes
of all terms add up to a value of the type.  Floating-point addition rounds after every step, so
another order gives another result, and minima and maxima of floats depend on the order where NaN
or zeros of both signs meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from microtir.schedule.proof import impossible
from microtir.tir import build, ir
from microtir.tir.visitor import Replacement, buffers_read, buffers_written, substitute, walk

REDUCTIONS = (ir.BinaryOp.ADD, ir.BinaryOp.MIN, ir.BinaryOp.MAX)


@dataclass(frozen=True, slots=True)
class Access:
    """A load or store inside a nest, with what is known to hold where it happens.

    `variables` are the loop variables and Lets around it inside the nest.  `reduction` is the
    operator if the access belongs to an update such as ``a[i] = a[i] + v``.  `indices` is None
    where the elements are not known (a micro-kernel).
    """

    buffer: ir.Buffer
    indices: tuple[ir.Expr, ...] | None
    is_write: bool
    facts: tuple[ir.Expr, ...]
    variables: tuple[ir.Var, ...]
    reduction: ir.BinaryOp | None = None

    def elsewhere(self, shared: frozenset[ir.Var]) -> tuple[Access, dict[ir.Var, ir.Var]]:
        """Return the access in another iteration: every variable but the shared ones is renamed."""
        renamed = {v: build.fresh(v, f"{v.name}'") for v in self.variables if v not in shared}
        mapping: dict[ir.Param, Replacement] = dict(renamed.items())
        facts = tuple(substitute(fact, mapping) for fact in self.facts)
        indices = self.indices and tuple(substitute(index, mapping) for index in self.indices)
        return replace(self, facts=facts, indices=indices), renamed


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two accesses whose order would change, and why that matters."""

    buffer: ir.Buffer
    is_float_reduction: bool

    def __str__(self) -> str:
        if self.is_float_reduction:
            return (
                f"'{self.buffer.name}' is reduced in floating point: every step rounds, so another"
                " order gives another result"
            )
        return f"iterations read and write the same element of '{self.buffer.name}'"


def accesses_of(nest: ir.Stmt, facts: tuple[ir.Expr, ...] = ()) -> tuple[Access, ...]:
    """Return every access of a nest to a buffer that lives longer than one iteration of it."""
    private = {node.buffer for node in walk(nest) if isinstance(node, ir.Allocate)}
    changing = frozenset(buffers_written(nest))
    return tuple(
        replace(access, facts=_stable(access.facts, changing))
        for access in _accesses(nest, facts, (), None)
        if access.buffer not in private
    )


def _stable(facts: tuple[ir.Expr, ...], changing: frozenset[ir.Buffer]) -> tuple[ir.Expr, ...]:
    """Return the facts that hold after a store: those that read nothing the nest changes."""
    return tuple(fact for fact in facts if not changing.intersection(buffers_read(fact)))


def _accesses(
    node: ir.Stmt | ir.Expr,
    facts: tuple[ir.Expr, ...],
    variables: tuple[ir.Var, ...],
    update: ir.Store | None,
) -> Iterator[Access]:
    """Yield accesses below `node`; `update` is the reduction step around an expression."""
    match node:
        case ir.For(var, start, stop, body):
            yield from _accesses(start, facts, variables, None)
            yield from _accesses(stop, facts, variables, None)
            inside = (build.ge(var, start), build.lt(var, stop))
            yield from _accesses(body, facts + inside, (*variables, var), None)
        case ir.If(condition, then, otherwise):
            yield from _accesses(condition, facts, variables, None)
            yield from _accesses(then, (*facts, condition), variables, None)
            if otherwise is not None:
                negated = build.logical_not(condition)
                yield from _accesses(otherwise, (*facts, negated), variables, None)
        case ir.Let(var, value, body):
            yield from _accesses(value, facts, variables, None)
            known = (build.eq(var, value),) if var.dtype is ir.DType.INT32 else ()
            yield from _accesses(body, facts + known, (*variables, var), None)
        case ir.Allocate(_, body):
            yield from _accesses(body, facts, variables, None)
        case ir.Seq(statements):
            for statement in statements:
                yield from _accesses(statement, facts, variables, None)
        case ir.Store(buffer, indices, value):
            step = node if reduction_of(node) else None
            for index in indices:
                yield from _accesses(index, facts, variables, None)
            yield from _accesses(value, facts, variables, step)
            yield Access(buffer, indices, True, facts, variables, reduction_of(node))
        case ir.KernelCall() | ir.Invoke() | ir.ExternCall():
            for buffer in dict.fromkeys((*buffers_read(node), *buffers_written(node))):
                yield Access(buffer, None, buffer in buffers_written(node), facts, variables)
        case _:
            yield from _loads(node, facts, variables, update)


def _loads(
    value: ir.Expr,
    facts: tuple[ir.Expr, ...],
    variables: tuple[ir.Var, ...],
    update: ir.Store | None,
) -> Iterator[Access]:
    for node in walk(value):
        if isinstance(node, ir.Load):
            # In an update the buffer is loaded once: that load is the accumulator.
            operator = reduction_of(update) if update and node.buffer is update.buffer else None
            yield Access(node.buffer, node.indices, False, facts, variables, operator)


def reduction_of(store: ir.Store) -> ir.BinaryOp | None:
    """Return the operator of ``a[i] = a[i] op v`` where v does not read a, else None."""
    value = store.value
    if not isinstance(value, ir.Binary) or value.op not in REDUCTIONS:
        return None
    for old, added in ((value.a, value.b), (value.b, value.a)):
        if (
            isinstance(old, ir.Load)
            and old.buffer is store.buffer
            and old.indices == store.indices
            and store.buffer not in buffers_read(added)
            and all(store.buffer not in buffers_read(index) for index in store.indices)
        ):
            return value.op
    return None


def conflict_of_order(
    accesses: tuple[Access, ...],
    swapped: Iterable[tuple[ir.Var, ir.Var]],
    *,
    allow_reassociation: bool,
) -> Conflict | None:
    """Find accesses whose order changes if each (outer, inner) pair changes places."""
    swaps = tuple(swapped)
    for a, b in _pairs(accesses):
        free, is_float = _is_reduction_pair(a, b, allow_reassociation=allow_reassociation)
        if free:
            continue
        for outer, inner in swaps:
            other, renamed = b.elsewhere(frozenset())
            order = (*_before(outer, renamed), *_before(inner, renamed, reverse=True))
            if not _never_meet(a, other, order, accesses):
                return Conflict(a.buffer, is_float)
    return None


def conflict_of_independence(accesses: tuple[Access, ...], loop: ir.Var) -> Conflict | None:
    """Find accesses of one element in two iterations of `loop`; None if there are none."""
    for a, b in _pairs(accesses):
        other, renamed = b.elsewhere(frozenset())
        if not _never_meet(a, other, _before(loop, renamed), accesses):
            return Conflict(a.buffer, is_float_reduction=False)
    return None


def _before(
    loop: ir.Var, renamed: dict[ir.Var, ir.Var], *, reverse: bool = False
) -> tuple[ir.Expr, ...]:
    """Return facts that say that the first access is in an earlier iteration of `loop`."""
    other = renamed.get(loop)
    if other is None:
        return ()  # an access in the range of the loop itself: in no iteration of it
    return (build.gt(loop, other) if reverse else build.lt(loop, other),)


def _pairs(accesses: tuple[Access, ...]) -> Iterator[tuple[Access, Access]]:
    """Yield ordered pairs of accesses to one buffer, at least one of them a store."""
    for a in accesses:
        for b in accesses:
            if a.buffer is b.buffer and (a.is_write or b.is_write):
                yield a, b


def _is_reduction_pair(a: Access, b: Access, *, allow_reassociation: bool) -> tuple[bool, bool]:
    """Return whether a pair may change its order, and is of a floating-point reduction."""
    if a.reduction is None or a.reduction is not b.reduction:
        return False, False
    is_float = a.buffer.dtype.is_float
    return allow_reassociation or not is_float, is_float


def _never_meet(a: Access, b: Access, order: tuple[ir.Expr, ...], nest: tuple[Access, ...]) -> bool:
    """Return whether two accesses, in iterations with this order, never touch the same element."""
    if a.indices is None or b.indices is None:
        return impossible((*a.facts, *b.facts), order)
    changing = {access.buffer for access in nest if access.is_write}
    same = []
    for x, y in zip(a.indices, b.indices, strict=True):
        # An index that is read from memory that changes may be anything.
        if not changing.intersection((*buffers_read(x), *buffers_read(y))):
            same.append(build.eq(x, y))
    # Most often the indices alone say it, which is quickly asked.
    goals = (*same, *order)
    return impossible((), goals) or impossible((*a.facts, *b.facts), goals)
