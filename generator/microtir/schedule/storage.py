"""Primitives that keep a part of a tensor close to where it is read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from microtir.errors import ScheduleError
from microtir.schedule.names import UniqueNames
from microtir.schedule.program import Loop, ScheduledProgram, Stage
from microtir.schedule.proof import cancelled_difference, constant_difference, proves
from microtir.schedule.region import IndexBox, region_read
from microtir.schedule.tree import facts_at, find_loop, path_to, replace_stmt, require_serial
from microtir.tir import build, ir
from microtir.tir.visitor import Rewriter, buffers_read, buffers_written, substitute, walk


def cache_read(
    program: ScheduledProgram, buffer: ir.Buffer, loop: Loop
) -> tuple[ScheduledProgram, ir.Buffer, tuple[Loop, ...]]:
    """Copy what an iteration of `loop` reads of an input into a LOCAL buffer, first in each.

    The copy stays inside the input: where the part reaches over an edge, it is cut.

    Raises:
        ScheduleError: the buffer is no input or constant, is not read there, or the part is not
            bounded by constants.
    """
    step = f"cache_read({buffer.name}, {loop})"
    node = find_loop(program, loop, step)
    require_serial(node, step)
    if buffer not in (*program.inputs, *program.constants):
        raise ScheduleError(f"'{buffer.name}' is neither an input nor a constant", where=step)
    if buffer not in buffers_read(node.body):
        raise ScheduleError(f"'{buffer.name}' is not read inside '{loop}'", where=step)
    box = region_read(program.body, node.body, buffer, step)
    names = UniqueNames.used_in(program.body)
    local = ir.Buffer(
        names.unique(f"{buffer.name}_local"), box.extent, buffer.dtype, ir.Scope.LOCAL
    )
    copies = tuple(
        Loop.new(loop.stage, f"{local.name}_i{axis}", names) for axis in range(len(box.extent))
    )
    inside = (*facts_at(program.body, node), *_range(node))
    copy = _copy_nest(buffer, local, box, copies, inside)
    body = build.seq(copy, _Redirect(buffer, local, box).stmt(node.body))
    new = replace(node, body=ir.Allocate(local, body))
    program = program.with_body(replace_stmt(program.body, node, new), *copies)
    return program, local, copies


def _range(loop: ir.For) -> tuple[ir.Expr, ...]:
    return (build.ge(loop.var, loop.start), build.lt(loop.var, loop.stop))


def _copy_nest(
    source: ir.Buffer,
    local: ir.Buffer,
    box: IndexBox,
    loops: tuple[Loop, ...],
    facts: tuple[ir.Expr, ...],
) -> ir.Stmt:
    places = tuple(loop.var for loop in loops)
    origin = tuple(build.add(start, var) for start, var in zip(box.start, places, strict=True))
    body: ir.Stmt = ir.Store(local, places, ir.Load(source, origin))
    for axis in reversed(range(len(places))):
        start, extent, dim = box.start[axis], box.extent[axis], source.shape[axis]
        first = _higher(facts, build.const(0), cancelled_difference(build.const(0), start))
        last = _lower(facts, build.const(extent), cancelled_difference(build.index(dim), start))
        body = ir.For(places[axis], first, last, body)
    return body


def _higher(facts: tuple[ir.Expr, ...], a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """Return max(a, b), without the one that is known to be lower."""
    if proves(facts, build.ge(a, b)):
        return a
    return b if proves(facts, build.ge(b, a)) else build.maximum(a, b)


def _lower(facts: tuple[ir.Expr, ...], a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """Return min(a, b), without the one that is known to be higher."""
    if proves(facts, build.le(a, b)):
        return a
    return b if proves(facts, build.le(b, a)) else build.minimum(a, b)


class _Redirect(Rewriter):
    """Accesses to a buffer go to the box of it that a smaller buffer holds."""

    def __init__(self, old: ir.Buffer, new: ir.Buffer, box: IndexBox) -> None:
        self.old = old
        self.new = new
        self.box = box

    def place(self, indices: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
        pairs = zip(self.exprs(indices), self.box.start, strict=True)
        return tuple(cancelled_difference(index, start) for index, start in pairs)

    def expr(self, e: ir.Expr) -> ir.Expr:
        if isinstance(e, ir.Load) and e.buffer is self.old:
            return ir.Load(self.new, self.place(e.indices))
        return self.expr_parts(e)

    def stmt(self, s: ir.Stmt) -> ir.Stmt:
        if isinstance(s, ir.Store) and s.buffer is self.old:
            return ir.Store(self.new, self.place(s.indices), self.expr(s.value))
        return self.stmt_parts(s)


# --- compute_at ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Producer:
    """The nest that computes a stage, the sequence that it is a part of, and its one store."""

    sequence: ir.Seq
    nest: ir.Stmt
    store: ir.Store
    loops: tuple[ir.For, ...]  # by axis of the storage


def compute_at(program: ScheduledProgram, stage: Stage, loop: Loop) -> ScheduledProgram:
    """Compute a stage inside a loop of its consumer, only the part that one iteration reads.

    Parts of neighbouring iterations that overlap are computed again.

    Raises:
        ScheduleError: the stage is an output or is read elsewhere, too; its storage is not indexed
            by its loops; the part cannot be bounded; or what it reads changes in between.
    """
    step = f"compute_at({stage.name}, {loop})"
    buffer = program.storage[stage]
    consumer = find_loop(program, loop, step)
    require_serial(consumer, step)
    if stage.is_output:
        raise ScheduleError(f"'{stage.name}' is an output, so all of it is needed", where=step)
    if loop.stage is stage:
        raise ScheduleError(f"'{loop}' is a loop of '{stage.name}' itself", where=step)
    producer = _producer(program, buffer, consumer, step)
    _check_readers(program, buffer, producer, consumer, step)
    box = region_read(program.body, consumer.body, buffer, step)
    small = replace(buffer, shape=box.extent)
    facts = (*facts_at(program.body, consumer), *_range(consumer))
    nest = _Restrict(producer, box, facts).stmt(producer.nest)
    redirect = _Redirect(buffer, small, box)
    inner = build.seq(redirect.stmt(nest), redirect.stmt(consumer.body))
    changed = replace(consumer, body=ir.Allocate(small, inner))
    rest = tuple(s for s in producer.sequence.statements if s is not producer.nest)
    body = replace_stmt(program.body, producer.sequence, build.seq(rest))
    body = _without_allocate(replace_stmt(body, _find(body, consumer.var), changed), buffer)
    storage = {s: small if s is stage else b for s, b in program.storage.items()}
    return replace(program.with_body(body), storage=storage)


def _find(body: ir.Stmt, var: ir.Var) -> ir.Stmt:
    return next(node for node in walk(body) if isinstance(node, ir.For) and node.var is var)


def _without_allocate(body: ir.Stmt, buffer: ir.Buffer) -> ir.Stmt:
    class Remove(Rewriter):
        def stmt(self, s: ir.Stmt) -> ir.Stmt:
            if isinstance(s, ir.Allocate) and s.buffer is buffer:
                return s.body
            return self.stmt_parts(s)

    return Remove().stmt(body)


def _producer(
    program: ScheduledProgram, buffer: ir.Buffer, consumer: ir.For, step: str
) -> _Producer:
    stores = [n for n in walk(program.body) if isinstance(n, ir.Store) and n.buffer is buffer]
    if len(stores) != 1:
        raise ScheduleError(
            f"'{buffer.name}' is written by {len(stores)} statements", where=step,
            legal="one statement; call compute_at before cache_write and partition",
        )  # fmt: skip
    store = stores[0]
    around = path_to(program.body, store)
    sequence = next(
        (
            n
            for n in reversed(around)
            if isinstance(n, ir.Seq) and any(c is consumer for c in walk(n))
        ),
        None,
    )
    if sequence is None:
        raise ScheduleError(f"'{consumer.var.name}' does not run after the stage", where=step)
    nest = next(s for s in sequence.statements if any(s is outer for outer in (*around, store)))
    loop_of = {n.var: n for n in around[around.index(sequence) :] if isinstance(n, ir.For)}
    loops = tuple(loop_of[i] for i in store.indices if isinstance(i, ir.Var) and i in loop_of)
    if len(loops) != len(store.indices) or len(set(map(id, loops))) != len(loops):
        raise ScheduleError(
            f"an index of '{buffer.name}' is not one of its loop variables", where=step,
            legal="a stage stored in the order of its axes, before its loops are split or fused",
        )  # fmt: skip
    for outer in loops:
        inside = {n.buffer for n in walk(outer) if isinstance(n, ir.Allocate)}
        if set(buffers_written(outer)) - inside != {buffer}:
            raise ScheduleError(
                f"an element of '{buffer.name}' depends on the previous element", where=step,
                legal="a stage whose elements do not depend on each other",
            )  # fmt: skip
    return _Producer(sequence, nest, store, loops)


def _check_readers(
    program: ScheduledProgram, buffer: ir.Buffer, producer: _Producer, consumer: ir.For, step: str
) -> None:
    inside = sum(1 for n in walk(consumer.body) if _reads(n, buffer))
    everywhere = sum(1 for n in walk(program.body) if _reads(n, buffer))
    if not inside or inside != everywhere:
        reason = "is not read inside the loop" if not inside else "is also read outside the loop"
        raise ScheduleError(f"'{buffer.name}' {reason}", where=step)
    position = producer.sequence.statements.index(producer.nest)
    later = {b for s in producer.sequence.statements[position + 1 :] for b in buffers_written(s)}
    for read in buffers_read(producer.nest):
        if read in later:
            raise ScheduleError(
                f"'{buffer.name}' is computed from '{read.name}', which changes before the loop"
                " ends",
                where=step,
            )


def _reads(node: object, buffer: ir.Buffer) -> bool:
    return isinstance(node, ir.Load | ir.BufferArgument) and node.buffer is buffer


class _Restrict(Rewriter):
    """Cuts the loops of a producer to a box of its storage."""

    def __init__(self, producer: _Producer, box: IndexBox, facts: tuple[ir.Expr, ...]) -> None:
        self.axis = {loop.var: axis for axis, loop in enumerate(producer.loops)}
        self.box = box
        self.facts = facts

    def stmt(self, s: ir.Stmt) -> ir.Stmt:
        if not isinstance(s, ir.For) or s.var not in self.axis:
            return self.stmt_parts(s)
        axis = self.axis[s.var]
        low, extent = self.box.start[axis], self.box.extent[axis]
        start = _higher(self.facts, low, s.start)
        stop = _lower(self.facts, build.add(low, extent), s.stop)
        if extent == 1 and start is low and constant_difference(stop, low) == 1:
            return self.stmt(substitute(s.body, {s.var: low}))
        return replace(s, start=start, stop=stop, body=self.stmt(s.body))

    def expr(self, e: ir.Expr) -> ir.Expr:
        return e
