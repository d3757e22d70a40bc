"""Models of made-up layers, and which kernel computes them."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from microtir.boards import Board
from microtir.config import CompilationConfig, Measure, Optimize
from microtir.graph.ir import Graph, Node, SourceLocation, Tensor
from microtir.graph.operator import Operator
from microtir.kernels import candidates
from microtir.module.ir_module import IRModule
from microtir.plan.measured import Cost, Key, Measured, signature

_FREE, _DEAR = Cost(0, 0), Cost(1 << 40, 1 << 40)


def layer(op: Operator, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], name: str) -> Node:
    """Return a node that no file has."""
    return Node(op, inputs, outputs, name, SourceLocation("made", 0, op.name.upper()))


def module_of(*nodes: Node, name: str = "layer") -> IRModule:
    """Return the model of layers beside each other."""
    inputs = tuple(x for node in nodes for x in node.activations)
    outputs = tuple(y for node in nodes for y in node.outputs)
    return IRModule(graph=Graph(name, inputs, outputs, nodes))


def for_speed(board: Board, name: str = "layer") -> CompilationConfig:
    """Return the configuration in which layers are measured on a board."""
    config = CompilationConfig.from_target(board.target)
    return config.with_(module_name=name, optimize=Optimize.SPEED, measure=Measure.INSTRUCTIONS)


def records_for(kernel: str, nodes: Sequence[Node], config: CompilationConfig) -> Measured:
    """Return records by which no other kernel of the nodes is chosen, whatever they cost."""
    costs = {
        Key(signature(node), c.kernel): _FREE if c.kernel == kernel else _DEAR
        for node in nodes
        for c in candidates(node, config)
    }
    return Measured(str(config.primary_target()), MappingProxyType(costs))
