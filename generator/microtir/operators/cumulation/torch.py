"""Read PyTorch's sums, products and extremes along an axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers


def _cumulated(operator: str) -> Callable[[TorchNode], Tensor]:
    """Return what reads cumsum or cumprod, in the type of the result; a number is its own sum."""

    def read(node: TorchNode) -> Tensor:
        x = node.cast(node.tensor("self"), node.result_dtype)
        if not x.shape:
            return x
        return node.onnx(operator, x, node.ints(node.axis(node.integer("dim"), len(x.shape))))

    return read


def _extreme(reduce: str) -> Callable[[TorchNode], tuple[Tensor, Tensor]]:
    """Return what reads cummax or cummin: the extreme up to each place, and its last place.

    Every place is compared with all before it, so that it takes the square of the axis.
    """

    def read(node: TorchNode) -> tuple[Tensor, Tensor]:
        x = node.tensor("self")
        line = x if x.shape else node.reshaped(x, (1,))
        axis, rank = node.axis(node.integer("dim"), len(line.shape)), len(line.shape)
        count = node.extent(line, axis)
        node.first.check_room(*line.shape, count)
        last = [n for n in range(rank) if n != axis] + [axis]
        rows = node.onnx("Transpose", line, perm=tuple(last))
        wide = node.reshaped(rows, (*rows.shape[:-1], 1, count))
        # Places behind one count as the first one, which is never behind.
        places = np.tril(np.broadcast_to(np.arange(count), (count, count)))
        seen = node.onnx("Gather", rows, node.constant(places), axis=rank - 1)
        values = node.onnx(f"Reduce{reduce}", seen, node.ints(rank), keepdims=0)
        column = node.reshaped(values, (*values.shape, 1))
        is_one = node.onnx(
            "And", node.onnx("Equal", wide, column), node.constant(np.tri(count) > 0)
        )
        numbers = node.constant(np.arange(count, dtype=np.int64))
        marked = node.onnx("Where", is_one, numbers, node.ints(0))
        at = node.onnx("ReduceMax", marked, node.ints(rank), keepdims=0)
        back = tuple(int(n) for n in np.argsort(last))
        results = (node.onnx("Transpose", one, perm=back) for one in (values, at))
        value, place = (node.reshaped(one, x.shape) for one in results)
        return value, place

    return read


TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(_cumulated("CumSum"), "self dim dtype", "cumsum"),
    *readers(_cumulated("CumProd"), "self dim dtype", "cumprod"),
    *readers(_extreme("Max"), "self dim", "cummax"),
    *readers(_extreme("Min"), "self dim", "cummin"),
)
