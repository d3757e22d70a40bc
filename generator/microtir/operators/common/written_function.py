"""Write functions of operators in TIR: what they are given and give, and their lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from microtir.dtype import DType
from microtir.graph.ir import Array, Node
from microtir.operators.common import written_operands
from microtir.tir.ir import PrimFunc
from microtir.tir.text import parse_function

Named = Sequence[tuple[str, Sequence[int]]]
"""Names and shapes of tensors; a shape has as many elements as the tensor's own."""


def written_function(
    node: Node,
    name: str,
    operands: Named,
    results: Named,
    lines: Sequence[str],
    tables: Mapping[str, Array] | None = None,
    scratch: tuple[str, DType, Sequence[int]] | None = None,
) -> PrimFunc:
    """Return the function of a node.

    Args:
        node: the operator with the types of its tensors.
        name: of the function.
        operands: the inputs, in their order.
        results: the outputs, in their order.
        lines: of the body.
        tables: constants besides those of the node.
        scratch: workspace of a call: its name, type and shape.
    """
    names, shapes = [n for n, _ in operands], [shape for _, shape in operands]
    constants, parameters, _ = written_operands.operands_text(node, names, shapes)
    tables_text = [written_operands.constant_text(n, data) for n, data in (tables or {}).items()]
    parameters += [
        written_operands.declared_text(n, tensor.dtype, shape)
        for (n, shape), tensor in zip(results, node.outputs, strict=True)
    ]
    head: list[str] = []
    if scratch is not None:
        parameters.append(written_operands.declared_text(*scratch))
        head = [f"  scratch {scratch[0]}"]
    declared = f"func {name}({', '.join(parameters)}):"
    return parse_function("\n".join([constants, *tables_text, declared, *head, *lines, ""]))
