"""The program that a schedule works on: the TIR of some tensors, and the loops that each owns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias, runtime_checkable

from microtir.errors import ScheduleError
from microtir.schedule.names import UniqueNames
from microtir.tir import ir


@runtime_checkable
class TensorLike(Protocol):
    """A tensor of `te`, as far as schedules see it."""

    @property
    def buffer(self) -> ir.Buffer: ...

    @property
    def name(self) -> str: ...


@runtime_checkable
class ScalarLike(Protocol):
    """A scalar parameter of `te`, as far as schedules see it."""

    @property
    def var(self) -> ir.Var: ...

    @property
    def name(self) -> str: ...


@runtime_checkable
class ExprHandle(Protocol):
    """An expression of `te`, as far as schedules see it."""

    @property
    def node(self) -> ir.Expr: ...


def is_parameter(var: ir.Var) -> bool:
    """Return whether a Var is a scalar parameter: only these declare a range."""
    return var.low is not None and var.high is not None


Argument: TypeAlias = ir.Buffer | ir.Var | TensorLike | ScalarLike


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One computed tensor."""

    tensor: TensorLike
    is_output: bool

    @property
    def name(self) -> str:
        return self.tensor.name


@dataclass(frozen=True, slots=True)
class Loop:
    """Handle of a loop: `name` is what the user calls it, `var` what it is in the TIR.

    The two differ where two stages have axes of the same name: names in TIR are unique.
    """

    stage: Stage
    name: str
    var: ir.Var

    @staticmethod
    def new(stage: Stage, name: str, names: UniqueNames) -> Loop:
        """Make the handle of a loop that a step makes."""
        return Loop(stage, name, ir.Var(names.unique(name)))

    def __str__(self) -> str:
        return f"{self.stage.name}.{self.name}"

    __repr__ = __str__


@dataclass(frozen=True, slots=True, eq=False)
class ScheduledProgram:
    """Loop nests that compute tensors, before their storage and scalars become parameters.

    `storage` holds the stages in order, each with the buffer that holds it in the body: the
    tensor's own for an output, a LOCAL one for an intermediate result.  `inputs`, `constants` and
    `variables` are in order of first use; `loops` has the handle of every loop by its variable.
    """

    body: ir.Stmt
    storage: Mapping[Stage, ir.Buffer]
    inputs: tuple[ir.Buffer, ...]
    constants: tuple[ir.Buffer, ...]
    variables: tuple[ir.Var, ...]
    loops: Mapping[ir.Var, Loop] = field(default_factory=dict)

    @property
    def outputs(self) -> tuple[ir.Buffer, ...]:
        """Return the storage of the outputs, each buffer once."""
        outputs = (buffer for stage, buffer in self.storage.items() if stage.is_output)
        return tuple(dict.fromkeys(outputs))

    def stage_of(self, tensor: TensorLike, where: str) -> Stage:
        """Return the stage that computes a tensor; ScheduleError if there is none."""
        for stage in self.storage:
            if stage.tensor is tensor:
                return stage
        raise ScheduleError(
            f"'{tensor.name}' is not computed by this schedule",
            where=where,
            legal=", ".join(stage.name for stage in self.storage),
        )

    def buffer_of(self, tensor: TensorLike | ir.Buffer) -> ir.Buffer:
        """Return the buffer of the body that holds a tensor, given it or its own buffer."""
        own = tensor if isinstance(tensor, ir.Buffer) else tensor.buffer
        return next((b for s, b in self.storage.items() if s.tensor.buffer is own), own)

    def with_body(self, body: ir.Stmt, *new_loops: Loop) -> ScheduledProgram:
        """Return the program after a rewrite that added loops."""
        added = {loop.var: loop for loop in new_loops}
        return replace(self, body=body, loops={**self.loops, **added})
