"""The schedule: a program, and the steps that have rewritten it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from microtir.errors import ScheduleError, UsageError, nearest
from microtir.schedule import reorder, split, storage
from microtir.schedule.cache_write import cache_write
from microtir.schedule.program import Argument, ExprHandle, Loop, ScheduledProgram, TensorLike
from microtir.schedule.reorder import UNROLL_LIMIT
from microtir.schedule.signature import TensorT, make_primfunc
from microtir.schedule.tensorize import KernelDescription, tensorize
from microtir.schedule.tree import loops_of
from microtir.support.arguments import checked_arguments
from microtir.tir import build, ir
from microtir.tir.passes import micro_kernel
from microtir.tir.printer import expr_text, stmt_text


class Schedule:
    """Rewrites the loop nests of a program, one checked step after the other.

    Every primitive either keeps the meaning of the program or raises a ScheduleError with the
    reason, and then nothing has changed.  `steps` says what was done so far.
    `te.create_schedule` makes one.
    """

    def __init__(self, program: ScheduledProgram) -> None:
        if not isinstance(program, ScheduledProgram):
            raise UsageError(
                f"a {type(program).__name__} is not a schedule of te",
                where="Schedule(program)",
                legal="the result of te.create_schedule",
                fix="call te.create_schedule(outputs); pass a PrimFunc to lower() or build()",
            )
        self._program = program
        self._history: list[tuple[str, ir.Stmt]] = []

    # --- looking ----------------------------------------------------------------------------------

    @property
    def body(self) -> ir.Stmt:
        """Return the program as it is now; TIR is immutable, so it stays what it is."""
        return self._program.body

    @property
    def steps(self) -> tuple[str, ...]:
        """Return what was done, one line a step."""
        return tuple(step for step, _ in self._history)

    def history(self) -> tuple[tuple[str, str], ...]:
        """Return every step with the text of the program after it."""
        return tuple((step, stmt_text(body)) for step, body in self._history)

    def text(self) -> str:
        """Return the program as it is now, in the text form of TIR."""
        return stmt_text(self._program.body)

    @checked_arguments
    def loops(self, stage: TensorLike) -> tuple[Loop, ...]:
        """Return the loops that compute a tensor, in the order of the text.

        Raises:
            ScheduleError: the tensor is not computed here.
        """
        owner = self._program.stage_of(stage, "Schedule.loops")
        return tuple(loop for loop in loops_of(self._program) if loop.stage is owner)

    @checked_arguments
    def loop(self, stage: TensorLike, name: str) -> Loop:
        """Return a tensor's loop by its axis, e.g. ``row``, or ``row_outer`` after split.

        Raises:
            ScheduleError: there is no such loop, or more than one.
        """
        loops = self.loops(stage)
        matches = [loop for loop in loops if loop.name == name]
        if len(matches) != 1:
            names = [loop.name for loop in loops]
            reason = "has no loop" if not matches else f"has {len(matches)} loops called"
            raise ScheduleError(
                f"'{stage.name}' {reason} '{name}'",
                where="Schedule.loop",
                legal=", ".join(names),
                fix=nearest(name, names) if not matches else "use the handles that steps return",
            )
        return matches[0]

    @checked_arguments
    def primfunc(
        self,
        args: Sequence[Argument] | None = None,
        name: str = "main",
        binds: Mapping[TensorT, ir.Buffer] | None = None,
    ) -> ir.PrimFunc:
        """Return the function of the program as it is now.

        Args:
            args: parameters in order: tensors, buffers, scalars.  One that is not used is legal:
                the caller passes it and it is not read.  A constant or an intermediate tensor that
                is named becomes a parameter.  None: inputs in order of first use, then scalars,
                then outputs.
            name: of the function, an identifier.
            binds: other storage for a tensor, of the same shape and type.

        Raises:
            ScheduleError: an argument is missing or given twice, or a bind does not fit.
        """
        return make_primfunc(self._program, args, name, binds)

    @checked_arguments
    def micro_kernel(self, args: Sequence[Argument], name: str) -> ir.PrimFunc:
        """Return the function as a micro-kernel: marks carried out, small arrays as variables.

        Args:
            args: parameters in order, as those of `primfunc`.
            name: of the function, an identifier.

        Raises:
            ScheduleError: an argument is missing or given twice.
        """
        return micro_kernel(self.primfunc(args, name))

    # --- ranges of loops --------------------------------------------------------------------------

    @checked_arguments
    def split(self, loop: Loop, factor: int) -> tuple[Loop, Loop]:
        """Make blocks of `factor` iterations and return (outer, inner).

        The tail of a range that is no multiple of `factor` is guarded by an If.
        """
        program, outer, inner = split.split(self._program, loop, factor)
        self._done(f"split({loop}, {factor}) -> {outer.name}, {inner.name}", program)
        return outer, inner

    @checked_arguments
    def fuse(self, outer: Loop, inner: Loop) -> Loop:
        """Make one loop of two perfectly nested ones; the order of iterations stays."""
        program, fused = split.fuse(self._program, outer, inner)
        self._done(f"fuse({outer}, {inner}) -> {fused.name}", program)
        return fused

    @checked_arguments
    def partition(self, loop: Loop, at: ExprHandle | ir.Expr | int) -> tuple[Loop, Loop]:
        """Make two loops one after the other: [start, at) and [at, stop), each cut to the range.

        The handles of loops inside the second one end in `_rest`.
        """
        if isinstance(at, int):
            at = build.const(at)
        point = at.node if isinstance(at, ExprHandle) else at
        program, first, rest = split.partition(self._program, loop, point)
        self._done(f"partition({loop}, {expr_text(point)}) -> {first.name}, {rest.name}", program)
        return first, rest

    # --- order of iterations ----------------------------------------------------------------------

    def reorder(self, *loops: Loop, allow_reassociation: bool = False) -> None:
        """Put perfectly nested loops into this order, the first one outermost.

        Integer sums, minima and maxima may be accumulated in any order.  Floating-point ones give
        another result in another order: that needs `allow_reassociation`.
        """
        program = reorder.reorder(self._program, loops, allow_reassociation=allow_reassociation)
        names = ", ".join(map(str, loops))
        option = ", allow_reassociation" if allow_reassociation else ""
        self._done(f"reorder({names}{option})", program)

    @checked_arguments
    def unroll(self, loop: Loop, limit: int = UNROLL_LIMIT) -> None:
        """Mark a loop with a constant range to be replaced by copies of its body.

        More than `limit` copies are taken for a mistake.
        """
        self._done(f"unroll({loop})", reorder.unroll(self._program, loop, limit))

    @checked_arguments
    def vectorize(self, loop: Loop) -> None:
        """Mark a loop whose iterations are shown to be independent of each other."""
        self._done(f"vectorize({loop})", reorder.vectorize(self._program, loop))

    # --- storage ----------------------------------------------------------------------------------

    @checked_arguments
    def cache_write(self, loop: Loop) -> ir.Buffer:
        """Make a LOCAL array of accumulators for the elements of `loop` and the loops below.

        The nest becomes three: set the accumulators (loops end in `_init`), add to them (loops
        keep their handles, and the reduction can be reordered outside them), write the elements
        (loops end in `_write`).
        """
        program, array = cache_write(self._program, loop)
        self._done(f"cache_write({loop}) -> {array.name}", program)
        return array

    @checked_arguments
    def cache_read(
        self, source: TensorLike | ir.Buffer, loop: Loop
    ) -> tuple[ir.Buffer, tuple[Loop, ...]]:
        """Copy the part of an input that an iteration of `loop` reads, first in each.

        Returns the LOCAL buffer and the loops of the copy, one per axis.
        """
        buffer = self._program.buffer_of(source)
        program, local, copies = storage.cache_read(self._program, buffer, loop)
        self._done(f"cache_read({buffer.name}, {loop}) -> {local.name}", program)
        return local, copies

    @checked_arguments
    def compute_at(self, producer: TensorLike, loop: Loop) -> None:
        """Compute an intermediate tensor inside a loop of its consumer.

        Each iteration computes the part that it reads, and the buffer shrinks to that part.
        """
        stage = self._program.stage_of(producer, "compute_at")
        self._done(
            f"compute_at({stage.name}, {loop})", storage.compute_at(self._program, stage, loop)
        )

    # --- micro-kernels ----------------------------------------------------------------------------

    @checked_arguments
    def tensorize(self, loop: Loop, kernel: KernelDescription) -> None:
        """Replace a loop by a call of a micro-kernel that means exactly that loop nest."""
        program = tensorize(self._program, loop, kernel)
        self._done(f"tensorize({loop}, {kernel.meaning.name})", program)

    def _done(self, step: str, program: ScheduledProgram) -> None:
        self._program = program
        self._history.append((step, program.body))
