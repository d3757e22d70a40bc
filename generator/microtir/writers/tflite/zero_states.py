"""Let LSTMs begin at zero in every run: the format keeps their states from run to run.

A state is a variable tensor, which nothing but the LSTM has to write.  Here a product with zeros
does before it, of one element of what the LSTM reads: that of constants would be computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Quantization, Tensor, TensorType
from microtir.graph.rewriting import Keeps, Rewrite, constant, named_apart, with_nodes
from microtir.operators.arithmetic.definition import Mul
from microtir.operators.conversion.definition import Quantize
from microtir.operators.movement.definition import StridedSlice
from microtir.operators.recurrent.definition import Lstm

_STATES = slice(1, 3)


class ZeroStates(Rewrite):
    """Writes zeros into the states of LSTMs of integers that begin with constants of zero.

    What such a layer gives is its hidden state behind each step; the last one is a part of that.
    """

    keeps = Keeps.BITS

    def __call__(self, graph: Graph) -> Graph:
        readers = graph.consumers()
        nodes = [part for node in graph.nodes for part in _written(node, graph, readers)]
        return named_apart(with_nodes(graph, nodes))


def is_product_with_zeros(node: Node) -> bool:
    """Return whether a node gives zeros, whatever it reads."""
    zeros = node.inputs[-1].data
    return isinstance(node.op, Mul) and zeros is not None and not zeros.any()


def _written(
    node: Node, graph: Graph, readers: Mapping[Tensor, tuple[Node, ...]]
) -> Iterator[Node]:
    read = [t in readers or t in graph.outputs for t in node.outputs]
    if not isinstance(node.op, Lstm) or not _begins_at_zero(node) or read[2:] == [True]:
        yield node
        return
    x = node.inputs[0]
    part = Tensor(f"{x.name}/element", replace(x.type, shape=(1, 1)))
    rank = len(x.shape)
    first = StridedSlice((0,) * rank, (1,) * rank, (1,) * rank)
    yield replace(node, op=first, inputs=(x,), outputs=(part,))
    states = []
    for tensor in node.inputs[_STATES]:
        source = part
        if part.dtype is not tensor.dtype:
            source = Tensor(f"{tensor.name}/element", replace(tensor.type, shape=(1, 1)))
            yield replace(node, op=Quantize(), inputs=(part,), outputs=(source,))
        scale = Quantization((tensor.type.quant.scale,), (0,))
        type_ = TensorType(tensor.shape, tensor.dtype, scale)
        zeros = constant(f"{tensor.name}/zeros", type_, np.zeros(tensor.shape))
        states.append(Tensor(f"{tensor.name}/begin", tensor.type))
        yield replace(node, op=Mul(), inputs=(source, zeros), outputs=(states[-1],))
    yield from _whole(replace(node, inputs=(x, *states, *node.inputs[3:])), read)


def _whole(node: Node, read: list[bool]) -> Iterator[Node]:
    """Yield the layer with all of its steps, and the last one as a part of them."""
    op, steps = node.attributes(Lstm), node.outputs[0]
    axis = 0 if op.time_major else 1
    count = node.inputs[0].shape[axis]
    if op.last_only:
        shape = list(steps.shape)
        shape[axis] = count
        every = Tensor(f"{steps.name}/steps", replace(steps.type, shape=tuple(shape)))
    else:
        every = steps
    yield replace(node, op=replace(op, last_only=False), outputs=(every, *node.outputs[1:]))
    wanted = [steps] if op.last_only and read[0] else []
    wanted += [node.outputs[1]] if read[1:2] == [True] else []
    begin = tuple(count - 1 if n == axis else 0 for n in range(3))
    extent = tuple(1 if n == axis else every.shape[n] for n in range(3))
    for tensor in wanted:
        part = StridedSlice(begin, (1, 1, 1), extent)
        yield replace(node, op=part, inputs=(every,), outputs=(tensor,))


def _begins_at_zero(node: Node) -> bool:
    states = node.inputs[_STATES]
    return all(
        tensor.data is not None
        and tensor.dtype in (DType.INT8, DType.INT16)
        and bool((tensor.data == tensor.type.quant.zero_point).all())
        for tensor in states
    )
