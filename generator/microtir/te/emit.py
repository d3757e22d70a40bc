"""Turns a computation into its naive loop nest.

Each prelude is placed in the outermost loop that defines all axes it reads: a maximum over a row
that a softmax subtracts from every element is computed once per row.  This never changes a value,
because expressions have no effects; and because an arm of a select that is not chosen must not be
evaluated, a prelude that only such an arm reads is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from microtir.errors import TirError
from microtir.schedule.names import UniqueNames
from microtir.schedule.program import is_parameter
from microtir.te.expr import (
    Axis,
    Bind,
    Computation,
    Expr,
    Prelude,
    Reduce,
    ReduceAxis,
    Scan,
    Tensor,
    Term,
)
from microtir.tir import build, ir
from microtir.tir.visitor import Replacement, children, substitute, variables_used

Values: TypeAlias = Mapping[ir.Param, Replacement]
Place: TypeAlias = Callable[["LoopScope"], ir.Stmt]


@dataclass(frozen=True, slots=True)
class LoopScope:
    """The definitions at a place of the function: axes and preludes, and what stands for them."""

    values: Values

    def define(self, var: ir.Var, value: ir.Expr) -> LoopScope:
        return LoopScope({**self.values, var: value})

    def resolve(self, value: Expr | ir.Expr) -> ir.Expr:
        """Replace everything in an expression by what stands for it here."""
        return substitute(value.node if isinstance(value, Expr) else value, self.values)

    def store(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...], value: ir.Expr) -> ir.Store:
        target = self.values.get(buffer, buffer)
        assert isinstance(target, ir.Buffer)
        return ir.Store(target, tuple(self.resolve(i) for i in indices), value)


@dataclass(frozen=True, slots=True)
class Nest:
    """The loop nest of one tensor; `loops` gives the axis name that each loop comes from."""

    body: ir.Stmt
    loops: tuple[tuple[ir.Var, str], ...]


def emit_nest(tensor: Tensor, names: UniqueNames, buffers: Values) -> Nest:
    """Emit the loop nest of a tensor; `buffers` replaces buffers of the computation.

    Raises:
        TirError: a reduction axis or a foreign Var is used outside its loop, or a reduction or
            bind is read only where it may not be evaluated.
    """
    assert tensor.computation is not None
    emitter = _Emitter(tensor, tensor.computation, names)
    body = emitter.emit(LoopScope(buffers))
    return Nest(body, tuple(emitter.loop_axes))


class _Emitter:
    def __init__(self, tensor: Tensor, computation: Computation, names: UniqueNames) -> None:
        self.tensor = tensor
        self.computation = computation
        self.names = names
        self.where = f"te.compute '{tensor.name}'"
        self.loop_axes: list[tuple[ir.Var, str]] = []
        self.free: dict[Prelude, frozenset[ir.Var]] = {}
        self.order: dict[tuple[Expr, bool], tuple[tuple[ir.Var, bool], ...]] = {}
        self.running: dict[Scan, ir.Buffer] = {}  # of the loops that are being emitted

    def emit(self, scope: LoopScope) -> ir.Stmt:
        computation = self.computation
        roots = [e for axis in computation.axes for e in (axis.start, axis.stop)]
        roots.append(computation.value)

        def element(inner: LoopScope) -> ir.Stmt:
            self.check_defined(inner, computation.value)
            value = inner.resolve(computation.value)
            return inner.store(self.tensor.buffer, computation.indices, value)

        return self.loops(computation.axes, roots, scope, element)

    def loops(
        self, axes: tuple[Axis | ReduceAxis, ...], roots: list[Expr], scope: LoopScope, inner: Place
    ) -> ir.Stmt:
        """Emit loops over `axes` and, as far out as it may be, every prelude of `roots`."""

        def here(defined: LoopScope) -> ir.Stmt:
            if not axes:
                return inner(defined)
            axis, *rest = axes
            self.check_defined(defined, axis.start, axis.stop)
            loop = ir.Var(self.names.unique(axis.var.name))
            self.loop_axes.append((loop, axis.var.name))
            inside = defined.define(axis.var, loop)
            scans = self.begun(axis.var, roots, inside)
            body = self.loops(tuple(rest), roots, inside, inner)
            start, stop = defined.resolve(axis.start), defined.resolve(axis.stop)
            return self.from_init(scans, defined, ir.For(loop, start, stop, body))

        return self.place(self.ready(roots, scope), scope, here)

    def place(self, preludes: list[Prelude], scope: LoopScope, inner: Place) -> ir.Stmt:
        """Put the preludes in order, then `inner` where all of them are defined."""
        if not preludes:
            return inner(scope)
        prelude, *rest = preludes
        name = self.names.unique(prelude.var.name)
        if isinstance(prelude, Bind):
            var = ir.Var(name, prelude.value.dtype)
            body = self.place(rest, scope.define(prelude.var, var), inner)
            return ir.Let(var, scope.resolve(prelude.value), body)
        if isinstance(prelude, Term):
            self.check_term(prelude)
            value = scope.resolve(ir.Load(self.tensor.buffer, self.computation.indices))
            return self.place(rest, scope.define(prelude.var, value), inner)
        if isinstance(prelude, Scan):
            step, after = self.step(prelude, scope)
            return build.seq(step, self.place(rest, after, inner))
        accumulator = ir.Buffer(name, (), prelude.value.dtype, ir.Scope.LOCAL)
        reduction = self.reduction(prelude, accumulator, scope)
        after = scope.define(prelude.var, ir.Load(accumulator, ()))
        return ir.Allocate(accumulator, build.seq(reduction, self.place(rest, after, inner)))

    def begun(self, axis: ir.Var, roots: list[Expr], inside: LoopScope) -> list[Scan]:
        """Give each scan along an axis its accumulator."""
        scans = [p for p in self.read(roots) if isinstance(p, Scan) and p.along is axis]
        for scan in scans:
            if not self.axes_of(scan) <= inside.values.keys():
                raise TirError(
                    f"the scan '{scan.var.name}' along '{axis.name}' reads an axis inside it",
                    where=self.where,
                    fix="make the axis of the scan the innermost axis, and use store",
                )
            name = self.names.unique(scan.var.name)
            self.running[scan] = ir.Buffer(name, (), scan.value.dtype, ir.Scope.LOCAL)
        return scans

    def from_init(self, scans: list[Scan], scope: LoopScope, loop: ir.Stmt) -> ir.Stmt:
        """Put what scans begin with in front of their loop."""
        for scan in reversed(scans):
            self.check_defined(scope, scan.init)
            start = ir.Store(self.running[scan], (), scope.resolve(scan.init))
            loop = ir.Allocate(self.running[scan], build.seq(start, loop))
        return loop

    def step(self, scan: Scan, scope: LoopScope) -> tuple[ir.Stmt, LoopScope]:
        """Return the statement that goes on from one step to the next, and what is then known."""
        self.check_defined(scope, scan.value)
        so_far = ir.Load(self.running[scan], ())
        combined = scan.combine(so_far, scope.resolve(scan.value))
        return ir.Store(so_far.buffer, (), combined), scope.define(scan.var, so_far)

    def reduction(self, reduce: Reduce, accumulator: ir.Buffer, scope: LoopScope) -> ir.Stmt:
        preludes = self.computation.value.needs.preludes
        term = next((p for p in preludes if isinstance(p, Term) and p.reduce is reduce), None)

        def update(inner: LoopScope) -> ir.Stmt:
            self.check_defined(inner, reduce.term)
            value = inner.resolve(reduce.value)
            if term is not None:
                var = ir.Var(self.names.unique(term.var.name), value.dtype)
                at = inner.define(term.along, inner.resolve(reduce.axes[0]))
                stored = at.store(self.tensor.buffer, self.computation.indices, var)
                combined = reduce.combine(ir.Load(accumulator, ()), var)
                step = ir.Store(accumulator, (), combined)
                return ir.Let(var, value, build.seq(stored, step))
            combined = reduce.combine(ir.Load(accumulator, ()), value)
            step = ir.Store(accumulator, (), combined)
            return step if reduce.where is None else ir.If(inner.resolve(reduce.where), step)

        start = ir.Store(accumulator, (), scope.resolve(reduce.init))
        return build.seq(start, self.loops(reduce.axes, list(reduce.operands), scope, update))

    def check_term(self, term: Term) -> None:
        """Check that a reduction stores exactly the places that are then read."""
        reduce, last = term.reduce, self.computation.axes[-1]
        ranges = [(axis.start.node, axis.stop.node) for axis in reduce.axes]
        is_of_type = reduce.value.dtype is self.tensor.dtype and reduce.where is None
        places = [(last.start.node, last.stop.node)]
        if term.along is last.var and is_of_type and ranges == places:
            return
        raise TirError(
            f"the reduction '{reduce.var.name}' does not store its value at each index of "
            f"'{term.along.name}' in '{self.tensor.name}'",
            where=self.where,
            legal="a reduction without a condition over the last axis, in the type of the result",
        )

    def ready(self, roots: list[Expr], scope: LoopScope) -> list[Prelude]:
        """Return preludes of `roots`, not yet placed, whose axes are defined; in order of use."""
        is_lazy = self.read(roots)
        ready = [
            p
            for p in is_lazy
            if p.var not in scope.values and self.axes_of(p) <= scope.values.keys()
        ]
        for prelude in ready:
            if is_lazy[prelude]:
                raise self.refuse_lazy(prelude)
        return ready

    def read(self, roots: list[Expr]) -> dict[Prelude, bool]:
        """Return the preludes that expressions read, in order of use; True if lazily only."""
        is_lazy: dict[Prelude, bool] = {}
        for root in roots:
            self.collect(root, lazy=False, is_lazy=is_lazy)
        return is_lazy

    def collect(self, value: Expr, *, lazy: bool, is_lazy: dict[Prelude, bool]) -> None:
        """Add the preludes that `value` reads, those they read first; True if read lazily only."""
        preludes = {prelude.var: prelude for prelude in value.needs.preludes}
        if (value, lazy) not in self.order:
            read = (each for each in _reads(value.node, lazy) if each[0] in preludes)
            self.order[value, lazy] = tuple(dict.fromkeys(read))
        for var, var_lazy in self.order[value, lazy]:
            prelude = preludes[var]
            if is_lazy.get(prelude) is False:
                continue  # already known to be evaluated anyway
            for operand in prelude.operands:
                self.collect(operand, lazy=var_lazy, is_lazy=is_lazy)
            is_lazy[prelude] = is_lazy.get(prelude, True) and var_lazy

    def axes_of(self, prelude: Prelude) -> frozenset[ir.Var]:
        """Return the other axes that must be defined where the prelude is computed."""
        if prelude not in self.free:
            used: set[ir.Var] = set()
            for operand in prelude.operands:
                used |= self.axes_read(operand)
            if isinstance(prelude, Scan):
                used.add(prelude.along)
            self.free[prelude] = frozenset(used - {axis.var for axis in prelude.axes})
        return self.free[prelude]

    def axes_read(self, value: Expr) -> frozenset[ir.Var]:
        preludes = {prelude.var: prelude for prelude in value.needs.preludes}
        used: set[ir.Var] = set()
        for var in variables_used(value.node):
            if var in preludes:
                used |= self.axes_of(preludes[var])
            elif not is_parameter(var):
                used.add(var)
        return frozenset(used)

    def check_defined(self, scope: LoopScope, *values: Expr) -> None:
        for value in values:
            for var in variables_used(value.node):
                if var in scope.values or is_parameter(var):
                    continue
                inner = [p for p in value.needs.preludes if p.var is var]
                free = self.axes_of(inner[0]) - scope.values.keys() if inner else {var}
                missing = next(iter(sorted(v.name for v in free)), var.name)
                raise TirError(
                    f"'{missing}' is used outside the reduction or computation whose axis it is",
                    where=self.where,
                    fix="name it in axis= of the reduction that reads it; create a runtime"
                    " parameter with te.var, which takes its range",
                )

    def refuse_lazy(self, prelude: Prelude) -> TirError:
        kind = {Bind: "bind", Scan: "scan"}.get(type(prelude), "reduction")
        return TirError(
            f"the {kind} '{prelude.var.name}' is read only in a branch of a select, or on the"
            " right of & or |. But it is computed before the condition is tested, so the"
            " condition cannot protect its loads",
            where=self.where,
            fix="put the select inside the reduction or bind, or read the value in the condition",
        )


def _reads(node: ir.Expr, lazy: bool) -> Iterator[tuple[ir.Var, bool]]:
    """Yield Vars in the order of evaluation, each with True where it may not be evaluated."""
    if isinstance(node, ir.Var):
        yield node, lazy
        return
    is_lazy = isinstance(node, ir.Select) or (
        isinstance(node, ir.Binary) and node.op in (ir.BinaryOp.AND, ir.BinaryOp.OR)
    )
    for number, child in enumerate(children(node)):
        assert not isinstance(child, ir.Stmt | ir.BufferView | ir.BufferArgument)
        yield from _reads(child, lazy or (is_lazy and number > 0))
