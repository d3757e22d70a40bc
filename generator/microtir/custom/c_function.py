"""Operators that are computed by a C function."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from microtir.custom.operands import activations, constant
from microtir.dtype import DType
from microtir.errors import UsageError
from microtir.graph.ir import Array, Node, Tensor
from microtir.operators import OperatorRecord
from microtir.operators.common.formula import WrittenFunction
from microtir.operators.custom import Reference, custom_record
from microtir.support.arguments import checked_arguments
from microtir.support.names import is_identifier
from microtir.tir import ir as tir


@checked_arguments
def from_c(
    name: str,
    reference: Reference,
    *,
    function: str,
    code: str | None = None,
    files: Sequence[str | os.PathLike[str]] = (),
    scalars: Callable[[Node], Sequence[int]] = lambda _node: (),
    scratch_bytes: Callable[[Node], int] = lambda _node: 0,
    returns_status: bool = False,
    stack_bytes: int = 0,
) -> OperatorRecord:
    """Define an operator as a C function.

    Its parameters are ``const T *`` of each input, ``T *`` of each output, ``uint8_t *`` of scratch
    if the operator asks for some, and an ``int32_t`` for each scalar. It reads and writes nothing
    else; inputs may lie in flash, outputs do not lie over inputs.

    Args:
        name: of the operator, as model files call it.
        reference: the same in numpy.
        function: name of the C function.
        code: its definition; the prototype and the standard integer types are there already.
        files: C files and headers to compile with the program, beside or instead of `code`. With
            neither, the function is expected of the program that the model is linked into.
        scalars: int32 arguments of a node, such as extents and fixed-point multipliers.
        scratch_bytes: workspace of one call.
        returns_status: it returns an int32_t, 0 for success; any other makes the model's run
            function return its own error. Otherwise it returns nothing.

        stack_bytes: what it has on the stack besides a few variables, and what it calls.

    Raises:
        UsageError: the function's name is not a C identifier, or a file cannot be read.
    """
    if not is_identifier(function):
        raise UsageError(f"'{function}' is not a C identifier", where="from_c(function)")
    sources = tuple(map(_read, files))
    if code is not None:
        sources = (tir.ExternSource(f"{function}.c", code, tir.SourceKind.DEFINITION), *sources)

    def build(node: Node, function_name: str) -> tir.PrimFunc:
        numbers, size = tuple(scalars(node)), scratch_bytes(node)
        scratch = tir.Buffer("scratch", (size,), DType.UINT8, alignment=8) if size else None
        operands = _Operands(node, scratch)
        limits = [tir.Var(f"n{i}", low=n, high=n) for i, n in enumerate(numbers)]
        extern = tir.ExternFunction(
            function,
            (*operands.params, *limits),
            reads=operands.params[: len(node.inputs)],
            writes=operands.params[len(node.inputs) :],
            meaning=_meaning(node, reference),
            returns_status=returns_status,
            stack_bytes=stack_bytes,
            sources=sources,
        )
        call = tir.ExternCall(extern, (*operands.arguments, *map(tir.IntImm, numbers)))
        return tir.PrimFunc(function_name, operands.outer, call, scratch=scratch)

    return custom_record(name, reference, WrittenFunction(build, scratch_bytes))


class _Operands:
    """The buffers of a node: those of the C function, and those of the layer that calls it."""

    def __init__(self, node: Node, scratch: tir.Buffer | None) -> None:
        tensors = (*activations(node), *node.outputs)
        inside = {tensor: _flat(f"t{i}", tensor) for i, tensor in enumerate(tensors)}
        parameters = [
            constant(t, f"constant{i}", (t.type.elements,)) if t.is_constant else inside[t]
            for i, t in enumerate((*node.inputs, *node.outputs))
        ]
        extra = () if scratch is None else (scratch,)
        names = [f"x{i}" for i in range(len(node.inputs))]
        names += [f"y{i}" for i in range(len(node.outputs))]
        named = zip(names, (*node.inputs, *node.outputs), strict=True)
        self.params = (
            *(_flat(name, tensor) for name, tensor in named),
            *(tir.Buffer(b.name, b.shape, b.dtype) for b in extra),
        )
        self.outer = (*inside.values(), *extra)
        self.arguments = tuple(
            tir.BufferArgument(b, (tir.IntImm(0),)) for b in (*parameters, *extra)
        )


def _flat(name: str, tensor: Tensor) -> tir.Buffer:
    return tir.Buffer(name, (tensor.type.elements,), tensor.dtype)


def _meaning(node: Node, reference: Reference) -> Callable[..., None]:
    """Return what the C function computes, by the function in numpy."""

    def run(*arguments: Array | int) -> None:
        arrays = [array for array in arguments if isinstance(array, np.ndarray)]
        tensors = (*node.inputs, *node.outputs)
        shaped = [a.reshape(t.shape) for a, t in zip(arrays, tensors, strict=False)]
        inputs, outputs = shaped[: len(node.inputs)], shaped[len(node.inputs) :]
        result = reference(node, *inputs)
        for output, value in zip(outputs, result if isinstance(result, tuple) else (result,),
                                 strict=True):  # fmt: skip
            output[...] = value

    return run


def _read(file: str | os.PathLike[str]) -> tir.ExternSource:
    path = Path(file)
    try:
        return tir.ExternSource(path.name, path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot be read: {reason}", where=str(path)) from None
