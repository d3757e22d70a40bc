"""Turns a program into a function: arguments, their order, and other storage for tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from microtir.errors import ScheduleError
from microtir.schedule.program import Argument, ScheduledProgram, TensorLike
from microtir.tir import ir
from microtir.tir.visitor import Rewriter, variables_used, walk, walk_statements

TensorT = TypeVar("TensorT", bound=TensorLike)


def make_primfunc(
    program: ScheduledProgram,
    args: Sequence[Argument] | None,
    name: str,
    binds: Mapping[TensorT, ir.Buffer] | None,
) -> ir.PrimFunc:
    """Make the function `name` with parameters `args`.

    Args:
        program: what the function computes.
        args: parameters in order.  An argument that the program does not use is legal: the caller
            passes it and it is not read.  A constant or an intermediate tensor that is named
            becomes a parameter.  None: inputs in order of first use, then scalars, then outputs.
        name: of the function.
        binds: other storage for a tensor, of the same shape and type.

    Raises:
        ScheduleError: an argument is missing or given twice, or a bind does not fit.
    """
    where = f"function '{name}'"
    if not name.isidentifier():
        raise ScheduleError(
            f"'{name}' is not a valid function name", where=where, legal="an identifier"
        )
    storage = _Storage.of(program, binds or {}, where)
    if args is None:
        params = _default_params(program, storage)
    else:
        params = tuple(storage.parameter(arg) for arg in args)
    _refuse_repeats(params, where)
    body = _Rebind(storage.final).stmt(program.body)
    _refuse_missing(body, params, where)
    return ir.PrimFunc(name, params, body)


@dataclass(slots=True)
class _Storage:
    """The final buffer of each buffer of the program."""

    program: ScheduledProgram
    final: dict[ir.Buffer, ir.Buffer]
    where: str

    @staticmethod
    def of(program: ScheduledProgram, binds: Mapping[TensorT, ir.Buffer], where: str) -> _Storage:
        storage = _Storage(program, {}, where)
        for tensor, buffer in binds.items():
            storage.bind(tensor, buffer)
        return storage

    def bind(self, tensor: TensorLike, buffer: ir.Buffer) -> None:
        where = f"{self.where}, binds['{tensor.name}']"
        known = _buffers(self.program)
        old = self.program.buffer_of(tensor)
        if old not in known:
            raise ScheduleError(f"the schedule does not use '{tensor.name}'", where=where)
        if buffer in self.final.values() or (buffer in known and buffer is not old):
            raise ScheduleError(
                f"buffer '{buffer.name}' already holds another tensor, so an element could be"
                " overwritten before it is read",
                where=where,
            )
        if buffer.shape != old.shape or buffer.dtype is not old.dtype:
            raise ScheduleError(
                f"buffer '{buffer.name}' is {_type(buffer)}, but its tensor is {_type(old)}",
                where=where,
            )
        if buffer.alignment % old.alignment:
            raise ScheduleError(
                f"buffer '{buffer.name}' is aligned to {buffer.alignment} bytes, but its tensor"
                f" needs {old.alignment}",
                where=where,
            )
        legal = self._legal_scopes(old)
        if buffer.scope not in legal:
            raise ScheduleError(
                f"buffer '{buffer.name}' has scope {buffer.scope.value}",
                where=where,
                legal=" or ".join(scope.value for scope in legal),
            )
        self.final[old] = buffer

    def _legal_scopes(self, buffer: ir.Buffer) -> tuple[ir.Scope, ...]:
        if buffer in self.program.outputs:
            return (ir.Scope.PARAMETER,)
        if buffer.scope is ir.Scope.LOCAL:
            return (ir.Scope.PARAMETER, ir.Scope.LOCAL)
        return (ir.Scope.PARAMETER, ir.Scope.CONSTANT)

    def parameter(self, arg: Argument) -> ir.Param:
        if isinstance(arg, ir.Var):
            return arg
        if isinstance(arg, ir.Buffer):
            return self._buffer_parameter(self.program.buffer_of(arg), arg)
        if isinstance(arg, TensorLike):
            return self._buffer_parameter(self.program.buffer_of(arg), arg.buffer)
        return arg.var

    def _buffer_parameter(self, old: ir.Buffer, own: ir.Buffer) -> ir.Buffer:
        buffer = self.final.get(old, old)
        if buffer.scope is ir.Scope.PARAMETER:
            return buffer
        if buffer.scope is ir.Scope.LOCAL and buffer.shape != own.shape:
            raise ScheduleError(
                f"'{own.name}' cannot be an argument, because compute_at reduced its storage",
                where=self.where,
            )
        self.final[old] = replace(buffer, scope=ir.Scope.PARAMETER, data=None)
        return self.final[old]


def _buffers(program: ScheduledProgram) -> tuple[ir.Buffer, ...]:
    return (*program.inputs, *program.constants, *program.storage.values())


def _default_params(program: ScheduledProgram, storage: _Storage) -> tuple[ir.Param, ...]:
    known = [storage.final.get(buffer, buffer) for buffer in _buffers(program)]
    outputs = [storage.final.get(buffer, buffer) for buffer in program.outputs]
    inputs = [b for b in known if b.scope is ir.Scope.PARAMETER and b not in outputs]
    return (*inputs, *program.variables, *outputs)


def _type(buffer: ir.Buffer) -> str:
    dims = "x".join(d.name if isinstance(d, ir.Var) else str(d) for d in buffer.shape)
    return f"{dims or 'scalar'} {buffer.dtype.value}"


def _refuse_repeats(params: tuple[ir.Param, ...], where: str) -> None:
    names = [param.name for param in params]
    for name in names:
        if names.count(name) > 1:
            raise ScheduleError(
                f"two parameters are called '{name}'", where=where, fix="rename one of them"
            )


def _refuse_missing(body: ir.Stmt, params: tuple[ir.Param, ...], where: str) -> None:
    shaped = [p for p in params if isinstance(p, ir.Buffer)]
    dims = (d for buffer in shaped for d in buffer.shape if isinstance(d, ir.Var))
    defined = set(_defined(body))
    for used in (*variables_used(body), *dims):
        if used not in defined and used not in params:
            raise ScheduleError(
                f"variable '{used.name}' is used, but is not an argument",
                where=where,
                fix=f"add '{used.name}' to args",
            )
    for node in walk(body):
        if not isinstance(node, ir.Load | ir.Store | ir.BufferArgument):
            continue
        if node.buffer.scope is ir.Scope.PARAMETER and node.buffer not in params:
            raise ScheduleError(
                f"'{node.buffer.name}' is used, but is not an argument",
                where=where,
                fix=f"add '{node.buffer.name}' to args",
            )


def _defined(body: ir.Stmt) -> Iterator[ir.Var]:
    for node in walk_statements(body):
        if isinstance(node, ir.For | ir.Let):
            yield node.var


class _Rebind(Rewriter):
    """Replaces buffers; one that is passed in is not brought to life any more."""

    def __init__(self, final: Mapping[ir.Buffer, ir.Buffer]) -> None:
        self.final = final

    def buffer(self, buffer: ir.Buffer) -> ir.Buffer:
        return self.final.get(buffer, buffer)

    def stmt(self, s: ir.Stmt) -> ir.Stmt:
        if isinstance(s, ir.Allocate) and self.buffer(s.buffer).scope is ir.Scope.PARAMETER:
            return self.stmt(s.body)
        return self.stmt_parts(s)
