"""Calls the functions of a user's program with numpy arrays and integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np

from microtir.artifact import FunctionData, ParameterData
from microtir.errors import RunError
from microtir.host.backend import Backend
from microtir.host.tensors import Array


class Function:
    """An exported function of a program; arrays that it writes are changed in place."""

    def __init__(self, data: FunctionData, backend: Backend, extra: Sequence[Array] = ()) -> None:
        """Make a function; `extra` follows its arguments: the file of constants."""
        self._data = data
        self._extra = tuple(extra)
        self._backend = backend

    @property
    def name(self) -> str:
        return self._data.name

    def __call__(self, *arguments: Array | int) -> None:
        """Call the function with its arguments in order.

        Raises:
            RunError: an argument does not fit, or the code returned an error status.
        """
        parameters = self._data.parameters
        if len(arguments) != len(parameters):
            raise RunError(
                f"{len(arguments)} arguments for {len(parameters)} parameters",
                where=self.name, legal=self._signature(),
            )  # fmt: skip
        pairs = list(zip(parameters, arguments, strict=True))
        # Integers first: shapes depend on them.
        scalars = {p.name: self._integer(p, a) for p, a in pairs if p.kind == "scalar"}
        values = [
            scalars[p.name] if p.kind == "scalar" else self._array(p, a, scalars) for p, a in pairs
        ]
        status = self._backend.call(self._data.function, [*values, *self._extra])
        if status != 0:
            raise RunError(
                f"the function returned status {status}: {self._backend.status_text(status)}",
                where=self.name, legal=self._signature(),
            )  # fmt: skip

    def _integer(self, parameter: ParameterData, argument: Array | int) -> int:
        if not isinstance(argument, int | np.integer):
            self._refuse(parameter, f"got {type(argument).__name__}")
        value, bounds = int(argument), np.iinfo(parameter.dtype)
        if not bounds.min <= value <= bounds.max:
            self._refuse(parameter, f"got {value}, which the type cannot hold")
        return value

    def _array(
        self, parameter: ParameterData, argument: Array | int, scalars: Mapping[str, int]
    ) -> Array:
        if not isinstance(argument, np.ndarray):
            self._refuse(parameter, f"got {type(argument).__name__}")
        shape = tuple(scalars[d] if isinstance(d, str) else d for d in parameter.shape)
        if argument.dtype != np.dtype(parameter.dtype) or argument.shape != shape:
            self._refuse(parameter, f"got {argument.dtype}{list(argument.shape)}")
        if not argument.flags.c_contiguous:
            self._refuse(parameter, "is not contiguous")
        if parameter.is_written and not argument.flags.writeable:
            self._refuse(parameter, "is written by the function and must be writeable")
        return argument

    def _refuse(self, parameter: ParameterData, problem: str) -> NoReturn:
        raise RunError(
            f"argument '{parameter.name}' {problem}", where=self.name, legal=self._signature()
        )

    def _signature(self) -> str:
        texts = []
        for parameter in self._data.parameters:
            text = f"{parameter.name}: {parameter.dtype}"
            if parameter.kind == "buffer":
                text += f"[{', '.join(str(d) for d in parameter.shape)}]"
            elif parameter.low is not None or parameter.high is not None:
                text += f" {parameter.low}..{parameter.high}"
            texts.append(text)
        return f"{self.name}({', '.join(texts)})"
