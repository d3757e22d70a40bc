"""cache_write: a block of elements is accumulated in a LOCAL array, then written."""

from __future__ import annotations

from dataclasses import dataclass, replace

from microtir.errors import ScheduleError
from microtir.schedule.names import UniqueNames
from microtir.schedule.program import Loop, ScheduledProgram
from microtir.schedule.proof import cancelled_difference
from microtir.schedule.tree import copy_loops, find_loop, path_to, replace_stmt, require_serial
from microtir.tir import build, ir
from microtir.tir.visitor import Rewriter, buffers_read, buffers_written, variables_used


@dataclass(frozen=True, slots=True)
class _Block:
    """A chain of loops and guards around the computation of one element.

    ``init; update; write`` are its statements: the first one sets the accumulator, the second ones
    add to it, the last ones read it.
    """

    chain: tuple[ir.For | ir.If | ir.Let, ...]
    accumulator: ir.Buffer
    init: ir.Stmt
    update: ir.Stmt
    write: ir.Stmt

    @property
    def loops(self) -> tuple[ir.For, ...]:
        return tuple(node for node in self.chain if isinstance(node, ir.For))


def cache_write(program: ScheduledProgram, loop: Loop) -> tuple[ScheduledProgram, ir.Buffer]:
    """Make three nests of one: set the accumulators, add to them, write the elements.

    The scalar accumulator of the element becomes an array with one element per iteration of `loop`
    and of the loops below it.  The loops of the second nest keep their handles, so the reduction
    can be reordered outside them; those of the others end in `_init` and `_write`.

    Raises:
        ScheduleError: there is no accumulator, an extent is not constant, or the nests would
            exchange values in another order.
    """
    step = f"cache_write({loop})"
    root = _with_names(program.body, find_loop(program, loop, step))
    block = _block_of(root, step)
    _check_order(block, step)
    shape = tuple(_extent(each, step) for each in block.loops)
    array = replace(block.accumulator, shape=shape)
    place = tuple(build.sub(each.var, each.start) for each in block.loops)
    expand = _Expand(block.accumulator, array, place)
    parts = [
        _around(block.chain, expand.stmt(part)) for part in (block.init, block.update, block.write)
    ]
    # What the sums do not read keeps its name in the nest that does.
    names = UniqueNames.used_in(replace_stmt(program.body, root, ir.Allocate(array, parts[1])))
    init, init_loops = copy_loops(parts[0], names, dict(program.loops), "_init")
    write, write_loops = copy_loops(parts[2], names, dict(program.loops), "_write")
    body = ir.Allocate(array, build.seq(init, parts[1], write))
    program = program.with_body(replace_stmt(program.body, root, body), *init_loops, *write_loops)
    return program, array


def _with_names(body: ir.Stmt, root: ir.Stmt) -> ir.Stmt:
    """Return the nest with the Lets right around it: values that only the writing reads wait."""
    for node in reversed(path_to(body, root)):
        if not isinstance(node, ir.Let):
            break
        root = node
    return root


def _block_of(root: ir.Stmt, step: str) -> _Block:
    chain: list[ir.For | ir.If | ir.Let] = []
    node: ir.Stmt = root
    while not isinstance(node, ir.Allocate):
        if isinstance(node, ir.For):
            require_serial(node, step)
            chain.append(node)
            node = node.body
        elif isinstance(node, ir.If) and node.otherwise is None:
            chain.append(node)
            node = node.then
        elif isinstance(node, ir.Let):
            chain.append(node)
            node = node.body
        else:
            raise ScheduleError(
                "the innermost loop does not compute an element with an accumulator to cache",
                where=step,
                legal="a loop of a tensor whose element is computed by a reduction",
            )
    accumulator = node.buffer
    statements = node.body.statements if isinstance(node.body, ir.Seq) else (node.body,)
    first = statements[0]
    last = max(n for n, s in enumerate(statements) if accumulator in buffers_written(s))
    if (
        accumulator.shape != ()
        or not isinstance(first, ir.Store)
        or first.buffer is not accumulator
        or accumulator in buffers_read(first.value)
        or last == 0
    ):
        raise ScheduleError(
            f"'{accumulator.name}' is not a scalar that is set once and then added to", where=step
        )
    update, write = build.seq(statements[1 : last + 1]), build.seq(statements[last + 1 :])
    return _Block(tuple(chain), accumulator, first, update, write)


def _check_order(block: _Block, step: str) -> None:
    """Check that nothing is read that a later one of the nests writes."""
    chain_values = [node.value for node in block.chain if isinstance(node, ir.Let)]
    chain_values += [node.condition for node in block.chain if isinstance(node, ir.If)]
    for node in block.loops:
        chain_values += [node.start, node.stop]
    read = {b for part in (block.init, block.update, *chain_values) for b in buffers_read(part)}
    for buffer in buffers_written(block.write):
        if buffer in read:
            raise ScheduleError(
                f"'{buffer.name}' is read by the reduction and written after it. With cache_write,"
                " every element would be read before any element is written",
                where=step,
            )
    for part in (block.init, block.update):
        for buffer in buffers_written(part):
            if buffer is not block.accumulator and buffer.scope is not ir.Scope.LOCAL:
                raise ScheduleError(
                    f"the reduction writes '{buffer.name}', and not only its accumulator",
                    where=step,
                )


def _extent(loop: ir.For, step: str) -> int:
    extent = cancelled_difference(loop.stop, loop.start)
    if not isinstance(extent, ir.IntImm) or extent.value < 1:
        raise ScheduleError(
            f"the number of iterations of '{loop.var.name}' is not constant, and a LOCAL array"
            " has a fixed size",
            where=step,
            fix="split the loop and apply cache_write to the inner loop",
        )
    return extent.value


def _around(chain: tuple[ir.For | ir.If | ir.Let, ...], inner: ir.Stmt) -> ir.Stmt:
    """Put the chain around another statement, without the Lets that it does not read."""
    body = inner
    for node in reversed(chain):
        if isinstance(node, ir.For):
            body = replace(node, body=body)
        elif isinstance(node, ir.If):
            body = replace(node, then=body)
        elif node.var in variables_used(body):
            body = replace(node, body=body)
    return body


class _Expand(Rewriter):
    """A scalar becomes an element of an array."""

    def __init__(self, old: ir.Buffer, new: ir.Buffer, place: tuple[ir.Expr, ...]) -> None:
        self.old = old
        self.new = new
        self.place = place

    def expr(self, e: ir.Expr) -> ir.Expr:
        if isinstance(e, ir.Load) and e.buffer is self.old:
            return ir.Load(self.new, self.place)
        return self.expr_parts(e)

    def stmt(self, s: ir.Stmt) -> ir.Stmt:
        if isinstance(s, ir.Store) and s.buffer is self.old:
            return ir.Store(self.new, self.place, self.expr(s.value))
        return self.stmt_parts(s)
