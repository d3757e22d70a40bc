"""Name the inputs of an operator whose function is written in TIR."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node


def operands_text(
    node: Node, names: Sequence[str], shapes: Sequence[Sequence[int]] | None = None
) -> tuple[str, list[str], list[str]]:
    """Return constants and parameters as TIR declares them, and the name of each input.

    A tensor that is there twice has one name, and is one parameter.  `shapes` are what the function
    takes them for, where those of the tensors are not convenient.
    """
    wanted = [tensor.shape for tensor in node.inputs] if shapes is None else shapes
    constants, parameters, known = [], [], {}
    for tensor, name, extents in zip(node.inputs, names, wanted, strict=True):
        if tensor in known:
            continue
        known[tensor] = name
        declared = declared_text(name, tensor.dtype, extents)
        if tensor.data is None:
            parameters.append(declared)
        else:
            constants.append(constant_text(name, tensor.data.reshape(tuple(extents))))
    return "\n".join(constants), parameters, [known[tensor] for tensor in node.inputs]


def declared_text(name: str, dtype: DType, shape: Sequence[int]) -> str:
    """Return the declaration of a buffer as TIR has it."""
    return f"{name}: {dtype.value}[{', '.join(map(str, shape))}]"


def constant_text(name: str, data: Array) -> str:
    """Return a constant of a function as TIR has it."""
    little = np.ascontiguousarray(data, data.dtype.newbyteorder("<"))
    declared = declared_text(name, DType(data.dtype.name), data.shape)
    return f'constant {declared} = "{little.tobytes().hex()}"'
