"""Runs functions on the interpreter, with arguments by name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from microtir.tir.interpreter import Interpreter
from microtir.tir.ir import Array, Buffer, PrimFunc, Var
from microtir.tir.visitor import buffers_written


def run(func: PrimFunc, arguments: Mapping[str, Array | int]) -> dict[str, Array]:
    """What `func` stores, by parameter name; elements that it does not store are 0.

    A buffer that it reads before it was stored is an InterpreterError.
    """
    sizes = {p: arguments[p.name] for p in func.params if isinstance(p, Var)}
    outputs: dict[str, Array] = {}
    args: list[Array | int] = []
    for param in func.params:
        given = arguments.get(param.name)
        if isinstance(param, Buffer) and param in buffers_written(func):
            shape = [sizes[d] if isinstance(d, Var) else d for d in param.shape]
            outputs[param.name] = np.zeros([int(d) for d in shape], param.dtype.value)
            given = outputs[param.name]
        assert given is not None, f"no argument for '{param.name}'"
        args.append(given)
    Interpreter([func]).run(func.name, args, uninitialised=set(outputs))
    return outputs
