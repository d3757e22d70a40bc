"""Bounds of the integer sums that operators hold on the way to a result.

Kernels add in INT32, as TFLite's do.  A sum that leaves INT32 is undefined in C, so a kernel may
add like that only where no input can make it happen.  The bounds here hold for every order of the
terms, with or without the bias, and for both forms of an input: less its zero point, or as it is
stored while the zero point's share is part of the bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from microtir.graph.ir import Node, SumRange
from microtir.operators import record_of
from microtir.operators.common.sums import Interval, any_value


def sums_of(node: Node, inputs: Sequence[Interval | None] = ()) -> SumRange | None:
    """Return bounds of the sums of an operator on integers; None if it has none.

    Args:
        node: of a legalised graph.
        inputs: what its inputs hold, as far as something is known; all values of their types
            otherwise.
    """
    rule = record_of(node.op).definition.sums
    if rule is None or not all(tensor.dtype.is_int for tensor in node.inputs[:1]):
        return None
    known = [*inputs, *[None] * (len(node.inputs) - len(inputs))]
    pairs = zip(known, node.inputs, strict=True)
    return rule(node, [any_value(t.dtype) if held is None else held for held, t in pairs])


@lru_cache(maxsize=4)  # one kernel after the other asks of the same node
def fits(node: Node) -> bool:
    """Return whether the sums of a node are proven to stay within INT32."""
    sums = node.sums if node.sums is not None else sums_of(node)
    return sums is None or sums.fits
