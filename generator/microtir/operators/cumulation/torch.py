"""Read PyTorch's sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable

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


TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(_cumulated("CumSum"), "self dim dtype", "cumsum"),
    *readers(_cumulated("CumProd"), "self dim dtype", "cumprod"),
)
