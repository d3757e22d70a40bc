"""Compute what loops and branches do to memory; where they begin and end takes no code."""

from __future__ import annotations

from microtir.graph.ir import Node
from microtir.operators.common.written_operands import declared_text, operands_text
from microtir.tir.ir import PrimFunc
from microtir.tir.text import parse_function


def put_item(node: Node, name: str) -> PrimFunc:
    """Write PUT_ITEM: the item alone, as the list is read and written in one memory.

    A turn of a loop then costs what its item does, however long the list is.
    """
    items, item, _ = node.inputs
    count, size = items.shape[0], item.type.elements
    shapes = ((count, size), (size,), (1,))
    constants, parameters, names = operands_text(node, ("items", "item", "number"), shapes)
    parameters.append(declared_text("y", items.dtype, shapes[0]))
    return parse_function(f"""
{constants}
func {name}({", ".join(parameters)}):
  let place: int64 = cast(int64, {names[2]}[0])
  let row: int32 = cast(int32, min(max(place, int64(0)), int64({count - 1})))
  if place == cast(int64, row):
    for i in range(0, {size}):
      y[row, i] = {names[1]}[i]
""")
