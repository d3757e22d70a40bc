"""Turns output tensors into a schedule over naive TIR, or straight into a PrimFunc."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from microtir.errors import TirError
from microtir.schedule.names import UniqueNames
from microtir.schedule.program import Argument, Loop, ScheduledProgram, Stage, is_parameter
from microtir.schedule.schedule import Schedule
from microtir.schedule.signature import TensorT
from microtir.support.arguments import checked_arguments
from microtir.te.emit import Values, emit_nest
from microtir.te.expr import Expr, Tensor
from microtir.tir import build, ir
from microtir.tir.visitor import buffers_read, variables_used


@checked_arguments
def create_schedule(outputs: Tensor | Sequence[Tensor]) -> Schedule:
    """Schedule the naive program: nests in order, intermediate results in LOCAL buffers.

    Raises:
        TirError: an output is not computed, is given twice, or a kernel breaks a rule of te.
    """
    return Schedule(_program((outputs,) if isinstance(outputs, Tensor) else tuple(outputs)))


@checked_arguments
def create_prim_func(
    args: Sequence[Argument] | None,
    name: str,
    outputs: Tensor | Sequence[Tensor],
    binds: Mapping[TensorT, ir.Buffer] | None = None,
) -> ir.PrimFunc:
    """Make the naive, unscheduled function; arguments as in `Schedule.primfunc`."""
    return create_schedule(outputs).primfunc(args, name, binds)


def constants_of(outputs: Sequence[Tensor]) -> tuple[ir.Buffer, ...]:
    """Return the constants that outputs are computed from; writes no TIR."""
    leaves = (tensor.buffer for tensor in _in_order(tuple(outputs)) if tensor.computation is None)
    return tuple(dict.fromkeys(b for b in leaves if b.scope is ir.Scope.CONSTANT))


def _program(outputs: tuple[Tensor, ...]) -> ScheduledProgram:
    if not outputs:
        raise TirError("create_schedule needs an output", where="te.create_schedule")
    for output in outputs:
        if output.computation is None or outputs.count(output) > 1:
            reason = "is listed twice" if outputs.count(output) > 1 else "is not computed"
            raise TirError(f"the output '{output.name}' {reason}", where="te.create_schedule")
    tensors = _in_order(outputs)
    storage = dict(_stages(tensors, outputs))
    replaced: Values = {stage.tensor.buffer: buffer for stage, buffer in storage.items()}
    buffers = tuple(dict.fromkeys(storage.values()))
    leaves = [tensor.buffer for tensor in tensors if tensor.computation is None]
    names = UniqueNames(
        [*(buffer.name for buffer in leaves), *(b.name for b in buffers),
         *(var.name for tensor in tensors for var in _parameters(tensor))]
    )  # fmt: skip
    nests = []
    loops: dict[ir.Var, Loop] = {}
    for stage in storage:
        assert isinstance(stage.tensor, Tensor)
        nest = emit_nest(stage.tensor, names, replaced)
        nests.append(nest.body)
        loops.update({var: Loop(stage, label, var) for var, label in nest.loops})
    body = build.seq(nests)
    for buffer in reversed(buffers):
        if buffer.scope is ir.Scope.LOCAL:
            body = ir.Allocate(buffer, body)
    return ScheduledProgram(
        body,
        storage,
        inputs=tuple(b for b in leaves if b.scope is ir.Scope.PARAMETER),
        constants=tuple(b for b in leaves if b.scope is ir.Scope.CONSTANT),
        variables=tuple(dict.fromkeys(v for tensor in tensors for v in _parameters(tensor))),
        loops=loops,
    )


def _stages(
    tensors: list[Tensor], outputs: tuple[Tensor, ...]
) -> Iterator[tuple[Stage, ir.Buffer]]:
    """Yield the computed tensors, each with the buffer that holds it in the function."""
    out = {output.buffer for output in outputs}
    local: dict[ir.Buffer, ir.Buffer] = {}
    for tensor in tensors:
        if tensor.computation is None:
            continue
        buffer = tensor.buffer
        if buffer not in out and buffer not in local:
            # The storage of a function has a fixed size: room for the largest value.
            extents = tuple(d.high if isinstance(d, ir.Var) else d for d in buffer.shape)
            fixed = tuple(extent for extent in extents if extent is not None)
            local[buffer] = replace(buffer, shape=fixed, scope=ir.Scope.LOCAL)
        yield Stage(tensor, buffer in out), local.get(buffer, buffer)


def _in_order(outputs: tuple[Tensor, ...]) -> list[Tensor]:
    """Return every tensor that the outputs need, each after those that it reads."""
    done: dict[Tensor, None] = {}

    def visit(tensor: Tensor) -> None:
        if tensor in done:
            return
        for read in _tensors_read(tensor):
            visit(read)
        done[tensor] = None

    for output in outputs:
        visit(output)
    return list(done)


def _tensors_read(tensor: Tensor) -> Iterator[Tensor]:
    for value in _expressions(tensor):
        for buffer in buffers_read(value.node):
            # Several where `into` was used: the element may be any one's.
            yield from (read for read in value.needs.tensors if read.buffer is buffer)


def _parameters(tensor: Tensor) -> Iterator[ir.Var]:
    """Yield scalar parameters that a tensor's computation or shape reads, in order of use."""
    for value in _expressions(tensor):
        yield from (var for var in variables_used(value.node) if is_parameter(var))
    if tensor.computation is not None:
        for index in tensor.computation.indices:
            yield from (var for var in variables_used(index) if is_parameter(var))
    yield from (dim for dim in tensor.buffer.shape if isinstance(dim, ir.Var))


def _expressions(tensor: Tensor) -> Iterator[Expr]:
    """Yield every expression that a computation evaluates, in order."""
    if tensor.computation is None:
        return
    for axis in tensor.computation.axes:
        yield from _with_preludes(axis.start)
        yield from _with_preludes(axis.stop)
    yield from _with_preludes(tensor.computation.value)


def _with_preludes(value: Expr) -> Iterator[Expr]:
    preludes = {prelude.var: prelude for prelude in value.needs.preludes}
    for var in variables_used(value.node):
        if var in preludes:
            for operand in preludes[var].operands:
                yield from _with_preludes(operand)
    yield value
