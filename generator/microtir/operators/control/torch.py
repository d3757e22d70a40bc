"""Read PyTorch's control flow, as ONNX's: of a choice both branches are computed."""

from __future__ import annotations

from collections.abc import Sequence

from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_values import Value
from microtir.operators.common.torch_operands import TorchNode, TorchReader


def cond(node: TorchNode) -> tuple[Tensor, ...]:
    """Read torch.cond: a condition, two graphs, and what either is given."""
    operands = node.tensors("3") if node.has("3") else ()

    def branch(name: str) -> object:
        def run(inputs: Sequence[Value]) -> tuple[Value, ...]:
            del inputs  # a branch of ONNX sees what is around it
            return node.run(name, *operands)

        return run

    return node.onnx_tensors(
        "If", node.tensor("0"), then_branch=branch("1"), else_branch=branch("2"),
        outputs=len(node.results),
    )  # fmt: skip


TORCH_READERS = (TorchReader("higher_order.cond", cond, ("0", "1", "2", "3")),)
