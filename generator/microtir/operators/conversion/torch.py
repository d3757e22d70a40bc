"""Read PyTorch's conversions of type; where tensors lie means nothing here."""

from __future__ import annotations

from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import Alias, TorchNode, TorchReader
from microtir.operators.common.torch_rows import NO_MEANING, readers


def convert(node: TorchNode) -> Tensor:
    """Read what makes a tensor one of the type of the result."""
    return node.cast(node.tensor("self"), node.result_dtype)


_ARGUMENTS = f"self {NO_MEANING} non_blocking copy other"

TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(
        convert, _ARGUMENTS,
        "to.dtype", "to.device", "to.dtype_layout", "to.other", "type_as", alias=Alias.MAYBE,
    ),
    *readers(convert, _ARGUMENTS, "_to_copy"),
)  # fmt: skip
