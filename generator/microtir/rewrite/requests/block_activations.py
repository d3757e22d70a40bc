"""Activations that meet weights with a scale for each block: floats, or rounded to int8."""

from __future__ import annotations

from dataclasses import dataclass, replace

from microtir.config.enums import BlockActivations
from microtir.errors import ConfigError
from microtir.graph.ir import Graph
from microtir.graph.rewriting import Rewrite, with_nodes
from microtir.operators.block_dense.definition import BlockDense


@dataclass(frozen=True, slots=True)
class ChooseActivations(Rewrite):
    """Rounds the rows that such layers read to int8, or leaves them as they are.

    Args:
        activations: what is asked for; `model` leaves each layer as its file has it.

    Raises:
        ConfigError: int8 is asked for, and no layer has such weights.
    """

    activations: BlockActivations

    def __call__(self, graph: Graph) -> Graph:
        if self.activations is BlockActivations.MODEL:
            return graph
        rounds = self.activations is BlockActivations.INT8
        if rounds and not any(isinstance(node.op, BlockDense) for node in graph.nodes):
            raise ConfigError(
                "int8 needs a layer whose weights have a scale for each block (MatMulNBits of "
                "ONNX), but the model has none",
                where="pass_config.graph.block_activations",
                legal="the values model or float32",
                fix="leave the option out",
            )
        nodes = [
            replace(node, op=replace(node.op, rounds_rows=rounds))
            if isinstance(node.op, BlockDense)
            else node
            for node in graph.nodes
        ]
        return with_nodes(graph, nodes)
