"""Compute the ring of newest inputs and its counter, by functions in TIR.

Both may be changed where they lie: each slot is read before another one takes its place.
"""

from __future__ import annotations

from microtir.graph.ir import Node
from microtir.operators.circular_buffer.definition import Countdown
from microtir.operators.common.written_function import written_function
from microtir.tir.ir import PrimFunc


def circular_buffer(node: Node, name: str) -> PrimFunc:
    """Write CIRCULAR_BUFFER."""
    slot = node.inputs[1].type.elements
    elements = node.output.type.elements
    old, lines = elements - slot, []
    if old:
        lines += [f"  for i in range(0, {old}):", f"    ring_next[i] = ring[i + {slot}]"]
    lines += [f"  for i in range({old}, {elements}):", f"    ring_next[i] = newest[i - {old}]"]
    operands = (("ring", (elements,)), ("newest", (slot,)))
    return written_function(node, name, operands, (("ring_next", (elements,)),), lines)


def countdown(node: Node, name: str) -> PrimFunc:
    """Write COUNTDOWN; a counter that was never set counts as the last run."""
    op = node.attributes(Countdown)
    lines = [
        "  let left: int32 = max(count[], 1)",
        "  due[] = left == 1",
        f"  count_next[] = select(left == 1, {op.period}, left - 1)",
    ]
    results = (("due", ()), ("count_next", ()))
    return written_function(node, name, (("count", ()),), results, lines)
