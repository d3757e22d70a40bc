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


def while_loop(node: TorchNode) -> tuple[Tensor, ...]:
    """Read while_loop: graphs that say whether it goes on and what a turn does, and their inputs.

    Both are given what goes from turn to turn, and behind it what no turn changes.
    """
    carried = node.tensors("2")
    others = node.tensors("3") if node.has("3") else ()

    def goes_on(states: Sequence[Tensor]) -> Tensor:
        return node.run("0", *states, *others)[0]

    def turn(inputs: Sequence[Value]) -> tuple[Value, ...]:
        states = node.run("1", *node.first.tensors(inputs[2:]), *others)
        return (goes_on(states), *states)

    begins = goes_on(carried)
    return node.onnx_tensors("Loop", None, begins, *carried, body=turn, outputs=len(carried))


_GRAPHS = ("0", "1", "2", "3")

TORCH_READERS = (
    TorchReader("higher_order.cond", cond, _GRAPHS),
    TorchReader("higher_order.while_loop", while_loop, _GRAPHS),
)
