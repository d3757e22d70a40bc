"""Keep indices that a model computes inside the tensors that they speak of."""

from __future__ import annotations

from microtir import te
from microtir.dtype import DType
from microtir.operators.common.formula import FormulaContext


def nearest(index: te.Expr, last: int, name: str = "index") -> te.Expr:
    """Return the index of [0, last] that is nearest to one that the model has computed.

    Every access lies in its tensor then, whatever the model computes.
    """
    return te.bind(name, te.cast(DType.INT32, te.clamp(index, 0, last)))


def nearest_begins(layer: FormulaContext, position: int, extent: tuple[int, ...]) -> list[te.Expr]:
    """Return where a part of the first input begins, by another input: as near as it fits."""
    begin, shape = layer.whole(position), layer.node.inputs[0].shape
    sizes = enumerate(zip(shape, extent, strict=True))
    return [nearest(begin[n], size - taken, f"begin{n}") for n, (size, taken) in sizes]
