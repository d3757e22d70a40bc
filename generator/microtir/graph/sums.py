"""Bounds of the integer sums that operators hold on the way to a result.

Kernels add in INT32, as TFLite's do.  A sum that leaves INT32 is undefined in C, so a kernel may
add like that only where no input can make it happen.  The bounds here hold for every order of the
terms, with or without the bias, and for both forms of an input: less its zero point, or as it is
stored while the zero point's share is part of the bias.
"""

from __future__ import annotations

from collections.abc import Sequence

from microtir.dtype import DType
from microtir.graph.ir import Node, SumRange
from microtir.operators import record_of
from microtir.operators.common.sums import ANY_INT8, Interval


def sums_of(node: Node, inputs: Sequence[Interval | None] = ()) -> SumRange | None:
    """Return bound the sums of an int8 operator; None if it has none.

    Args:
        node: of a legalised graph.
        inputs: what its inputs hold, as far as something is known; all values of int8 otherwise.
    """
    rule = record_of(node.op).definition.sums
    if rule is None or any(t.dtype is not DType.INT8 for t in node.inputs[:1]):
        return None
    known = [*inputs, *[None] * (len(node.inputs) - len(inputs))]
    return rule(node, [ANY_INT8 if interval is None else interval for interval in known])


def fits(node: Node) -> bool:
    """Return whether the sums of a node are proven to stay within INT32."""
    sums = node.sums if node.sums is not None else sums_of(node)
    return sums is None or sums.fits
