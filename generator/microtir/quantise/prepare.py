"""Rewrite a float graph so that its layers have forms in integers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from microtir.config import PassConfig
from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Tensor, TensorType
from microtir.graph.rewriting import GraphPass, Keeps, Rewrite, constant, with_nodes
from microtir.operators import record_of
from microtir.operators.arithmetic.definition import Add, AddN, Mul
from microtir.operators.division.definition import Div
from microtir.operators.unary.definition import Neg, Rsqrt, Sqrt, Square
from microtir.rewrite.checked import rewritten
from microtir.rewrite.imports.fold_affine import FoldAffine
from microtir.rewrite.optimise import (
    FoldConstants,
    FoldPad,
    FuseActivation,
    FuseLstmLoops,
    GroupsToDepthwise,
    MatmulToDense,
    RemoveDeadNodes,
    RemoveIdentities,
)


class Elementary(Rewrite):
    """Writes squares, negatives and long sums as products and sums of two, which have integers.

    Integers of a negative mean its real number with the zero point 0 alone, and so do those of a
    sum of many. A quotient by a square root becomes a product with RSQRT: tflite-micro has no
    SQRT in integers, and a product takes fewer instructions than a quotient.
    """

    keeps = Keeps.SUMS

    def __call__(self, graph: Graph) -> Graph:
        roots = {node.output: node for node in graph.nodes if isinstance(node.op, Sqrt)}
        return with_nodes(graph, [part for node in graph.nodes for part in _parts(node, roots)])


def _parts(node: Node, roots: Mapping[Tensor, Node]) -> Iterator[Node]:
    """Yield what stands for a node; `roots` are square roots by their results."""
    is_real = node.outputs[0].dtype is DType.FLOAT32
    if is_real and isinstance(node.op, Square):
        yield replace(node, op=Mul(), inputs=(node.inputs[0], node.inputs[0]))
    elif is_real and isinstance(node.op, Neg):
        minus_one = TensorType((1,), DType.FLOAT32)
        factor = constant(f"{node.output.name}/minus_one", minus_one, np.array([-1.0]))
        yield replace(node, op=Mul(), inputs=(node.inputs[0], factor))
    elif is_real and isinstance(node.op, Div) and node.inputs[1] in roots:
        yield from _by_root(node, node.op, roots[node.inputs[1]])
    elif is_real and isinstance(node.op, AddN):
        total, last = node.inputs[0], len(node.inputs) - 1
        for number, term in enumerate(node.inputs[1:], 1):
            name = f"{node.output.name}/sum_{number}"
            result = node.output if number == last else Tensor(name, node.output.type)
            yield Node(Add(), (total, term), (result,), f"{node.name}/{number}", node.source)
            total = result
    else:
        yield node


def _by_root(node: Node, op: Div, root: Node) -> Iterator[Node]:
    """Yield RSQRT, and a product with it where the dividend is not 1."""
    dividend = node.inputs[0]
    is_one = dividend.data is not None and bool((dividend.data == 1.0).all())
    if is_one and op == Div() and node.output.shape == root.output.shape:
        yield replace(node, op=Rsqrt(), inputs=root.inputs)
        return
    inverse = Tensor(f"{node.output.name}/inverse_root", root.output.type)
    yield Node(Rsqrt(), root.inputs, (inverse,), inverse.name, node.source)
    yield replace(node, op=Mul(op.activation), inputs=(dividend, inverse))


class WithBiases(Rewrite):
    """Gives layers of constant weights a bias, so that there is one to correct."""

    def __call__(self, graph: Graph) -> Graph:
        return with_nodes(graph, [_with_bias(node) for node in graph.nodes])


def _with_bias(node: Node) -> Node:
    axis = record_of(node.op).definition.quantization.weight_axis
    if axis is None or len(node.inputs) != 2 or node.output.dtype is not DType.FLOAT32:
        return node
    channels = node.output.type.channels
    type_ = TensorType((channels,), DType.FLOAT32)
    bias = constant(f"{node.output.name}/bias", type_, np.zeros(channels))
    return replace(node, inputs=(*node.inputs, bias))


_PASSES: tuple[GraphPass, ...] = (
    FoldConstants(),
    RemoveIdentities(),
    MatmulToDense(),
    FuseLstmLoops(),
    GroupsToDepthwise(),
    FoldPad(),
    Elementary(),
    FoldAffine(),
    FuseActivation(),
    RemoveDeadNodes(),
)


def prepared(graph: Graph, *, with_biases: bool = False) -> Graph:
    """Return a float graph whose normalisations are in weights, and activations in layers.

    Args:
        graph: as it was read.
        with_biases: whether each layer of weights gets a bias.
    """
    passes = (*_PASSES, WithBiases()) if with_biases else _PASSES
    return rewritten(graph, passes, PassConfig())
