"""The schedule: a program, and the steps that have rewritten it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from microtir.schedule.program import Argument, Program
from microtir.schedule.signature import TensorT, make_primfunc
from microtir.tir import ir


class Schedule:
    """Rewrites the loop nests of a program, one checked step after the other."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def primfunc(
        self,
        args: Sequence[Argument] | None = None,
        name: str = "main",
        binds: Mapping[TensorT, ir.Buffer] | None = None,
    ) -> ir.PrimFunc:
        """The function of the program as it is now; see `signature.make_primfunc`."""
        return make_primfunc(self._program, args, name, binds)
