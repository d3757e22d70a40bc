"""The AOT main: parameters, calls and what it leaves to placement."""

from __future__ import annotations

from microtir.config.enums import Optimize
from microtir.dtype import DType
from microtir.executor import aot
from microtir.graph.ir import Graph, Node, SourceLocation, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.kernels import emit
from microtir.kernels.table import kernels_of
from microtir.operators.activations.definition import Relu, Tanh
from microtir.operators.arithmetic.definition import Add
from microtir.operators.movement.definition import Reshape
from microtir.plan import plan
from microtir.plan.ir import Candidate, PlanConstraints
from microtir.tir.function import LayerName
from microtir.tir.ir import Allocate, Buffer, BufferView, IntImm, Invoke, PrimFunc, Scope, Seq


def tensor(name: str, shape: tuple[int, ...]) -> Tensor:
    """A float tensor."""
    return Tensor(name, TensorType(shape, DType.FLOAT32))


def node(op: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> Node:
    """A node of one output, named after it."""
    return Node(op, inputs, (output,), output.name, SourceLocation("test", 0, op.name))


def offered(node: Node) -> tuple[Candidate, ...]:
    """What lowering offers for a node."""
    return tuple(kernel.candidate(node) for kernel in kernels_of(node))


def main_of(graph: Graph) -> PrimFunc:
    """The main of a graph, planned and emitted."""
    planned = plan(graph, offered, PlanConstraints(Optimize.BALANCED))
    functions = {
        op: (emit(op, planned.layouts, LayerName(f"layer{i}")),)
        for i, op in enumerate(planned.operators)
        if not op.candidate.is_view
    }
    return aot.main(planned, functions, "main")


def test_main_calls_layers_in_order_with_their_row_range() -> None:
    """Inputs and outputs are parameters, activations are allocated, views cost no call."""
    x, a = tensor("x", (1, 4, 2, 3)), tensor("a", (1, 4, 2, 3))
    b, y = tensor("b", (1, 2, 4, 3)), tensor("y", (1, 2, 4, 3))
    graph = Graph(
        "g", (x,), (y,),
        (node(Relu(), (x,), a), node(Reshape(), (a,), b), node(Tanh(), (b,), y)),
    )  # fmt: skip
    main = main_of(graph)
    assert [p.name for p in main.params] == ["x", "y"]
    assert isinstance(main.body, Allocate)
    assert main.body.buffer.scope is Scope.WORKSPACE
    assert isinstance(main.body.body, Seq)
    first, second = main.body.body.statements
    assert isinstance(first, Invoke) and isinstance(second, Invoke)
    assert first.args[-2:] == (IntImm(0), IntImm(4))
    assert second.args[-2:] == (IntImm(0), IntImm(2))
    written, read = first.args[1], second.args[0]
    assert isinstance(written, BufferView) and isinstance(read, BufferView)
    assert written.buffer is read.buffer


def test_an_input_read_twice_is_passed_once() -> None:
    """X + x has one input parameter, as the layer function has."""
    x, y = tensor("x", (1, 3)), tensor("y", (1, 3))
    main = main_of(Graph("g", (x,), (y,), (node(Add(), (x, x), y),)))
    assert isinstance(main.body, Seq)
    (call,) = main.body.statements
    assert isinstance(call, Invoke)
    views = [arg for arg in call.args if isinstance(arg, BufferView)]
    buffers = [p for p in main.params if isinstance(p, Buffer)]
    assert [view.buffer for view in views] == buffers
