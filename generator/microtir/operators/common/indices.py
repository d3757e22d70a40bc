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


def nearest_begins(
    layer: FormulaContext, position: int, extent: tuple[int, ...], *, from_end: bool = False
) -> list[te.Expr | int]:
    """Return where a part of the first input begins, by another input: as near as it fits.

    Axes behind those that it speaks of are taken whole. Numbers below 0 may count from the end.
    """
    begin, shape = layer.whole(position), layer.node.inputs[0].shape
    (named,) = layer.node.inputs[position].shape
    begins: list[te.Expr | int] = [0] * len(shape)
    for n, (size, taken) in enumerate(zip(shape[:named], extent[:named], strict=True)):
        index = begin[n]
        if from_end:
            index = te.bind(f"given{n}", index)
            index = te.select(index < 0, index + size, index)
        begins[n] = nearest(index, size - taken, f"begin{n}")
    return begins
