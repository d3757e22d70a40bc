"""Planning: which candidate wins, and which tensors share memory."""

from __future__ import annotations

import pytest

from microtir.config.enums import Optimize
from microtir.dtype import DType
from microtir.errors import UnsupportedModelError
from microtir.graph.ir import Graph, Node, SourceLocation, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.operators.activations.definition import Relu, Tanh
from microtir.operators.movement.definition import Reshape
from microtir.plan import plan
from microtir.plan.ir import Candidate, Cost, LayoutKind, Plan, PlanConstraints


def tensor(name: str, shape: tuple[int, ...] = (1, 6)) -> Tensor:
    """A float tensor."""
    return Tensor(name, TensorType(shape, DType.FLOAT32))


def node(op: Operator, x: Tensor, y: Tensor) -> Node:
    """A node of one input, named after its output."""
    return Node(op, (x,), (y,), y.name, SourceLocation("test", 0, op.name))


def candidate(kernel: str, cost: int = 1, scratch: int = 0, weights: int = 0) -> Candidate:
    """A candidate of which only the costs matter."""
    kinds = (LayoutKind.NHWC,)
    is_view = kernel == "view"
    return Candidate(
        kernel, kinds, kinds, None, weights, (Cost(cost),), (scratch,), is_view=is_view
    )


def view_or_copy(node: Node) -> tuple[Candidate, ...]:
    """What the lowering table offers for a reshape, and a kernel for the rest."""
    if isinstance(node.op, Reshape):
        return candidate("view", 0), candidate("copy", 9)
    return (candidate("direct"),)


def planned(inputs: list[Tensor], outputs: list[Tensor], *nodes: Node) -> Plan:
    """The balanced plan of a graph."""
    graph = Graph("g", tuple(inputs), tuple(outputs), nodes)
    return plan(graph, view_or_copy, PlanConstraints(Optimize.BALANCED))


def test_a_reshape_inside_is_a_view_of_its_input() -> None:
    """No code, and one storage for both tensors."""
    x, a, b, y = tensor("x"), tensor("a"), tensor("b", (2, 3)), tensor("y", (2, 3))
    result = planned([x], [y], node(Relu(), x, a), node(Reshape(), a, b), node(Tanh(), b, y))
    assert [op.candidate.kernel for op in result.operators] == [
        "direct", "view", "direct",
    ]  # fmt: skip
    assert result.storage[b] is result.storage[a]


def test_a_reshape_to_an_output_makes_the_producer_write_there() -> None:
    """The storage of the class is the output's, since that is the caller's memory."""
    x, a, y = tensor("x"), tensor("a"), tensor("y", (2, 3))
    result = planned([x], [y], node(Relu(), x, a), node(Reshape(), a, y))
    assert result.storage[a] is y


def test_a_reshape_of_an_input_reads_the_input() -> None:
    """Nobody writes an input, so a view of it is safe."""
    x, a, y = tensor("x"), tensor("a", (2, 3)), tensor("y", (2, 3))
    result = planned([x], [y], node(Reshape(), x, a), node(Relu(), a, y))
    assert result.storage[a] is x


@pytest.mark.parametrize("both_are_outputs", [False, True])
def test_memory_of_the_caller_is_copied(both_are_outputs: bool) -> None:
    """Input to output, and output to output, are different memory: a view cannot join them."""
    x, a, y = tensor("x"), tensor("a"), tensor("y", (2, 3))
    if both_are_outputs:
        result = planned([x], [a, y], node(Relu(), x, a), node(Reshape(), a, y))
    else:
        result = planned([x], [y], node(Reshape(), x, y))
    assert result.operators[-1].candidate.kernel == "copy"


@pytest.mark.parametrize(
    ("goal", "kernel"),
    [
        (Optimize.SPEED, "direct"),
        (Optimize.BALANCED, "table"),
        (Optimize.RAM_LEAST, "copy"),
        (Optimize.FLASH, "table"),
    ],
)
def test_the_goal_ranks_candidates(goal: Optimize, kernel: str) -> None:
    """Speed takes the cheapest, the least RAM the least scratch, flash the fewest weight bytes.

    Balanced charges weights that the node does not have itself, as it charges code.
    """
    x, y = tensor("x"), tensor("y")
    offers = (
        candidate("direct", cost=1, scratch=8, weights=8),
        candidate("copy", cost=9, scratch=0, weights=8),
        candidate("table", cost=9, scratch=8, weights=0),
    )
    graph = Graph("g", (x,), (y,), (node(Relu(), x, y),))
    result = plan(graph, lambda _node: offers, PlanConstraints(goal))
    assert result.operators[0].candidate.kernel == kernel


def test_a_node_without_candidates_is_named() -> None:
    """The diagnostic says which operator of which file has no kernel."""
    x, y = tensor("x"), tensor("y")
    graph = Graph("g", (x,), (y,), (node(Relu(), x, y),))
    with pytest.raises(UnsupportedModelError, match="test: operator 0 relu: no kernel"):
        plan(graph, lambda _node: (), PlanConstraints(Optimize.SPEED))
