"""The meaning of TIR: runs functions on numpy arrays and refuses whatever is undefined.

Every function is translated once to Python source (`tir.interpreter_code`) that works on the
memory of `tir.interpreter_memory`; this file checks arguments, counts steps and calls.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NoReturn, TypeAlias

import numpy as np

from microtir.errors import InterpreterError
from microtir.tir.interpreter_code import Compiled, compile_function
from microtir.tir.interpreter_memory import MemoryView
from microtir.tir.ir import Array, Buffer, ExternFunction, PrimFunc, Var
from microtir.tir.visitor import buffers_written

Argument: TypeAlias = "MemoryView | int"


class StepLimitError(InterpreterError):
    """The run was stopped because it took more steps than allowed."""


class Machine:
    """State of one run: the counter of steps and the functions that are active."""

    def __init__(self, interpreter: Interpreter, max_steps: int) -> None:
        self._interpreter = interpreter
        self._active: list[str] = []
        self.max_steps = max_steps
        self.steps = 0

    def count(self, steps: int) -> None:
        """Add loop iterations that are about to run."""
        self.steps += steps
        if self.steps > self.max_steps:
            raise StepLimitError(
                f"the run takes more than {self.max_steps} steps",
                where=self._active[-1] if self._active else None,
                fix="use smaller extents, or raise max_steps",
            )

    def invoke(self, name: str, args: Sequence[Argument], caller: str) -> None:
        """Run the function called `name` of the module."""
        compiled = self._interpreter.compiled(name, caller)
        if name in self._active:
            raise InterpreterError(f"'{name}' calls itself", where=caller, legal="no recursion")
        self.enter(compiled, args, caller)

    def enter(self, compiled: Compiled, args: Sequence[Argument], caller: str) -> None:
        """Check arguments against the parameters and runs the body."""
        func = compiled.func
        self._active.append(func.name)
        self.count(1)
        compiled.run(self, *_bind(func, args, caller))
        self._active.pop()

    def leave(self, function: ExternFunction, args: Sequence[Argument], caller: str) -> None:
        """Run the meaning of a function outside the program on arrays over the memory.

        Raises:
            InterpreterError: it has none, or would read what nobody wrote.
        """
        if function.meaning is None:
            raise InterpreterError(
                f"'{function.name}' has no implementation in Python",
                where=caller,
                fix="pass a Python function as `meaning` of the ExternFunction",
            )
        self.count(1)
        bound = _bind(function, args, caller)
        sizes = {p: a for p, a in zip(function.params, bound, strict=True) if isinstance(a, int)}
        values: list[Array | int] = []
        for param, arg in zip(function.params, bound, strict=True):
            if isinstance(param, Var) or isinstance(arg, int):
                values.append(sizes[param])
                continue
            if param in function.reads and not all(arg.mask_bytes):
                raise InterpreterError(
                    f"'{function.name}' reads '{param.name}' before it is written", where=caller
                )
            shape = [sizes[d] if isinstance(d, Var) else d for d in param.shape]
            values.append(np.frombuffer(arg.bytes, param.dtype.value).reshape(shape))
        function.meaning(*values)
        for param, arg in zip(function.params, bound, strict=True):
            if param in function.writes and isinstance(arg, MemoryView):
                arg.mask_bytes[:] = b"\x01" * len(arg.mask_bytes)


class Interpreter:
    """Runs the functions of a module.

    A step is one loop iteration or one call.  Arguments follow the order of the parameters: an
    array of the parameter's type and number of elements for a buffer, an int for a Var.
    """

    def __init__(self, functions: Sequence[PrimFunc], *, max_steps: int = 10**9) -> None:
        self._functions = {f.name: f for f in functions}
        self._compiled: dict[str, Compiled] = {}
        self._max_steps = max_steps

    def run(
        self,
        name: str,
        args: Sequence[Array | int],
        *,
        uninitialised: Collection[str] = (),
    ) -> int:
        """Run a function; stores change the given arrays.

        Args:
            name: the function.
            args: one per parameter.
            uninitialised: names of buffer parameters whose elements must be written before they
                are read, e.g. outputs and the workspace.

        Returns:
            The number of steps.

        Raises:
            InterpreterError: something undefined happened, or the arguments do not fit.
            StepLimitError: the limit was reached.
        """
        machine = Machine(self, self._max_steps)
        compiled = self.compiled(name, "run")
        params = compiled.func.params
        if len(args) != len(params):
            raise InterpreterError(
                f"got {len(args)} arguments for {len(params)} parameters", where=name
            )
        written = set(buffers_written(compiled.func))
        bound = [
            _argument(name, p, a, p in written, p.name not in uninitialised)
            for p, a in zip(params, args, strict=True)
        ]
        machine.enter(compiled, bound, name)
        return machine.steps

    def compiled(self, name: str, caller: str) -> Compiled:
        """Return the translated function called `name`; InterpreterError if there is none."""
        if name not in self._compiled:
            if name not in self._functions:
                raise InterpreterError(f"there is no function '{name}'", where=caller)
            self._compiled[name] = compile_function(self._functions[name])
        return self._compiled[name]


def _argument(
    function: str, param: Buffer | Var, value: Array | int, written: bool, initialised: bool
) -> Argument:
    where = f"{function}, argument '{param.name}'"
    if isinstance(param, Var):
        if not isinstance(value, int | np.integer):
            raise InterpreterError("the argument is not an integer", where=where)
        return int(value)
    if not isinstance(value, np.ndarray):
        raise InterpreterError("the argument is not an array", where=where)
    if value.dtype.name != param.dtype.value:
        raise InterpreterError(f"got {value.dtype.name}, expected {param.dtype.value}", where=where)
    if not value.flags.c_contiguous or (written and not value.flags.writeable):
        raise InterpreterError("the array is not contiguous, or is a read-only output", where=where)
    return MemoryView.of_array(value, initialised=initialised)


def _bind(func: PrimFunc | ExternFunction, args: Sequence[Argument], caller: str) -> list[Argument]:
    """Return arguments cut to the parameters' sizes, after every check."""

    def refuse(param: Buffer | Var, what: str) -> NoReturn:
        raise InterpreterError(what, where=f"{caller}, argument '{param.name}' of '{func.name}'")

    if len(args) != len(func.params):
        raise InterpreterError(
            f"got {len(args)} arguments for {len(func.params)} parameters of '{func.name}'",
            where=caller,
        )
    kernel = func.kernel if isinstance(func, PrimFunc) else None
    merges = kernel is not None and kernel.merges
    values: dict[Var, int] = {}
    for param, arg in zip(func.params, args, strict=True):
        if isinstance(param, Var):
            if isinstance(arg, MemoryView):
                refuse(param, "got a buffer, expected an integer")
            low = param.dtype.min if param.low is None else param.low
            high = param.dtype.max if param.high is None else param.high
            if not low <= arg <= high:
                refuse(param, f"{arg} is outside the declared range [{low}, {high}]")
            values[param] = arg
    bound: list[Argument] = []
    for param, arg in zip(func.params, args, strict=True):
        if isinstance(param, Buffer):
            if not isinstance(arg, MemoryView):
                refuse(param, "got an integer, expected a buffer")
            if arg.dtype is not param.dtype:
                refuse(param, f"got {arg.dtype.value}, expected {param.dtype.value}")
            count = math.prod(values[d] if isinstance(d, Var) else d for d in param.shape)
            if merges:  # its extents are those of the largest layer; a call gives its own layer's
                count = min(count, arg.count)
            if arg.count < count:
                refuse(param, f"got {arg.count} elements, expected {count}")
            if arg.address % param.alignment:
                refuse(param, f"address {arg.address} is not aligned to {param.alignment} bytes")
            arg = arg if arg.count == count else arg.part(0, count, param.dtype)
        bound.append(arg)
    return bound
