"""Compute between QuantizeLinear and DequantizeLinear in integers, where that gives the same.

The readers write a quantised model as its definition has it: integers become floats, a layer
computes, its result becomes integers.  Here a layer between both becomes one of integers: exact
sums of int32, rescaled in float32 as onnxruntime does it, or exactly for PT2E.  A function of one
element becomes a table.  What only moves elements, or picks of them, moves the integers; the
conversion is done behind it, where it may find another one to vanish with.  Kernels have int8 and
int16: uint8 that stays between such operators is stored less 128, uint16 less 32,768.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, SourceLocation, Tensor
from microtir.graph.rewriting import Keeps, Rewrite, live_nodes, substitute
from microtir.operators import record_of
from microtir.operators.activations.definition import Relu
from microtir.operators.arithmetic.definition import Add, Mul, Sub
from microtir.operators.common.attributes import Activation, Rescaling
from microtir.operators.common.types import QUANTISED
from microtir.operators.conversion.definition import Dequantize, Quantize, Tabulated
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.definition import Trait
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.movement.definition import Concatenation, Pad
from microtir.operators.pooling.definition import AveragePool2D
from microtir.operators.reduction.definition import Mean, Sum
from microtir.operators.selection.definition import Select
from microtir.operators.softmax.definition import LEAST_FLOAT_SCALE, Softmax
from microtir.operators.transposed_convolution.definition import TransposeConv
from microtir.rewrite.facts.regions import Region
from microtir.rewrite.imports.exact_layers import is_exact
from microtir.rewrite.imports.float_layers import FloatLayer, float_layer
from microtir.rewrite.imports.movements import has_one_scale, moves
from microtir.rewrite.imports.quantised_chain import Chain, chain_before
from microtir.rewrite.imports.stored_constants import rounded_bias, stored_bias, stored_weights

_MOST_TABULATED = 32  # operators in a row that become one table


class FuseQuantised(Rewrite):
    """Has integer layers where a float one stands between conversions."""

    keeps = Keeps.NUMBERS

    def __call__(self, graph: Graph) -> Graph:
        return _Fusion(graph).graph()


def float_layers(graph: Graph) -> tuple[FloatLayer, ...]:
    """Return what `FuseQuantised` leaves in floats between integers."""
    fusion = _Fusion(graph)
    fusion.graph()
    return tuple(fusion.left.values())


# --- operators ------------------------------------------------------------------------------------


def _is_exact(stored: Tensor, result: Tensor) -> bool:
    """Return whether integers of 24 bits give a softmax."""
    return stored.dtype is DType.INT8 and result.type.quant.scale >= LEAST_FLOAT_SCALE


def _has_types(node: Node) -> bool:
    """Return whether an operator takes the types that a node has: not all take int16."""
    types = tuple(tuple(t.dtype for t in tensors) for tensors in (node.inputs, node.outputs))
    return record_of(node.op).definition.types.accepts(*types)


def _is_pt2e(last: Node) -> bool:
    return isinstance(last.op, Quantize) and last.op.by_reciprocal


def _rescaling(last: Node) -> Rescaling:
    """Return how integers become those that a node gives: as onnxruntime does it, or PT2E."""
    return Rescaling.EXACT if _is_pt2e(last) else Rescaling.FLOAT32


def _requantised(last: Node, stored: Tensor, result: Tensor) -> Node:
    """Return what gives integers another scale, as the steps of a model do it."""
    op = Quantize(ties_to_even=True, rescaling=_rescaling(last), by_reciprocal=_is_pt2e(last))
    return replace(last, op=op, inputs=(stored,), outputs=(result,))


class _Fusion:
    """Builds the graph anew, node by node; what is needed no more is left out in the end."""

    def __init__(self, graph: Graph) -> None:
        self._old = graph
        self._consumers = graph.consumers()
        self._made: dict[Tensor, Node] = {}
        self._renamed: dict[Tensor, Tensor] = {}
        self.left: dict[tuple[SourceLocation, str], FloatLayer] = {}

    def graph(self) -> Graph:
        for old in self._old.nodes:
            node = substitute(old, self._renamed)
            for fused in self._found(node) or (node,):
                self._made.update(dict.fromkeys(fused.outputs, fused))
        nodes = dict.fromkeys(self._made.values())
        outputs = tuple(self._renamed.get(tensor, tensor) for tensor in self._old.outputs)
        return replace(self._old, nodes=tuple(live_nodes(nodes, outputs)), outputs=outputs)

    def _found(self, node: Node) -> tuple[Node, ...]:
        """Return what a node becomes; nothing if it stays."""
        if isinstance(node.op, Quantize) and node.inputs[0].dtype is DType.FLOAT32:
            return self._quantised(node) if node.output.dtype in QUANTISED else ()
        if moves(node) and node.inputs[0].dtype is DType.FLOAT32:
            return self._moved(node)
        return ()

    def _stored(self, tensor: Tensor) -> Tensor | None:
        """Return the integers that a float is dequantised from."""
        node = self._made.get(tensor)
        if node is None or not isinstance(node.op, Dequantize):
            return None
        source = node.inputs[0]
        return source if source.dtype in QUANTISED and has_one_scale(source) else None

    def _moved(self, node: Node) -> tuple[Node, ...]:
        """Move the integers, and dequantise behind; places of elements are the same."""
        values = {t: self._stored(t) for t in node.inputs if t.dtype is DType.FLOAT32}
        stored = values[node.inputs[0]]
        scales = {None if t is None else t.type.quantization for t in values.values()}
        if stored is None or len(scales) > 1:
            return ()
        floats = [output for output in node.outputs if output.dtype is DType.FLOAT32]
        results = {
            output: Tensor(f"{output.name}_stored", replace(stored.type, shape=output.shape))
            for output in floats
        }
        outputs = tuple(results.get(output, output) for output in node.outputs)
        inputs = tuple(values.get(tensor) or tensor for tensor in node.inputs)
        moved = replace(node, inputs=inputs, outputs=outputs)
        dequantised = (
            replace(node, op=Dequantize(), inputs=(result,), outputs=(output,),
                    name=f"{node.name}_dequantised{number or ''}")
            for number, (output, result) in enumerate(results.items())
        )  # fmt: skip
        return (moved, *dequantised) if _has_types(moved) else ()

    def _quantised(self, node: Node) -> tuple[Node, ...]:
        stored = self._stored(node.inputs[0])
        if stored is not None and stored.type == node.output.type:
            if node.output in self._old.outputs:
                return ()
            self._renamed[node.output] = stored
            return ()
        if stored is not None:
            return (_requantised(node, stored, node.output),)
        chain = chain_before(node, self._producer)
        if chain is None:
            return ()
        first = chain.first(node)
        nodes = self._integers(chain.layer, chain.activation, first)
        if nodes:
            nodes = (*nodes, *chain.moved(first.output, node))
        if not nodes or not all(_has_types(node) and is_exact(node) for node in nodes):
            self._leave(chain, node)
            return ()
        return nodes

    def _integers(self, layer: Node, activation: Node | None, node: Node) -> tuple[Node, ...]:
        """Return the layer of integers that gives what a node quantises; nothing if none does."""
        is_of_pt2e = isinstance(layer.op, BatchMatmul | TransposeConv)
        if is_of_pt2e and not _is_pt2e(node):
            return ()
        if isinstance(layer.op, Conv2D | FullyConnected | TransposeConv):
            return self._weighted(layer, activation, node)
        if isinstance(layer.op, Add | Sub | Mul | BatchMatmul):
            fused = self._of_two(layer, activation, node)
            return fused or self._tabulated(layer, activation, node)
        if isinstance(layer.op, AveragePool2D | Mean | Sum | Softmax):
            return self._rescaled(layer, activation, node)
        if isinstance(layer.op, Concatenation | Select):
            return self._joined(layer, node)
        if isinstance(layer.op, Pad):
            return self._padded(layer, node)
        return self._tabulated(layer, activation, node)

    def _leave(self, chain: Chain, last: Node) -> None:
        """Take down a layer of floats whose operands were integers."""
        layer = chain.layer
        region: dict[Node, None] = dict.fromkeys(chain.moves)
        waiting = [layer]
        while waiting:
            node = waiting.pop()
            region[node] = None
            if not isinstance(node.op, Dequantize):
                makers = (self._made.get(t) for t in node.inputs if t.dtype.is_float)
                waiting += [m for m in makers if m is not None and m not in region]
        if any(isinstance(node.op, Dequantize) for node in region):
            stored = [self._stored(tensor) for tensor in layer.inputs]
            left = float_layer(layer, stored, tuple(region), last)
            known = self.left.get((left.source, left.why))
            self.left[left.source, left.why] = left if known is None else known.joined(left)

    def _producer(self, tensor: Tensor, consumer: Node) -> Node | None:
        """Return the node of a tensor that has one consumer only."""
        consumers = self._consumers.get(tensor, ())
        is_alone = len(consumers) == 1 and consumers[0].name == consumer.name
        return self._made.get(tensor) if is_alone and tensor not in self._old.outputs else None

    def _weighted(self, layer: Node, activation: Node | None, last: Node) -> tuple[Node, ...]:
        """Return the layer of integers; nothing if it is none."""
        op, stored = layer.op, self._stored(layer.inputs[0])
        assert isinstance(op, Conv2D | FullyConnected | TransposeConv)
        weights = stored_weights(layer.inputs[1])
        if stored is None or weights is None or op.activation is not Activation.NONE:
            return ()
        inputs = [stored, weights]
        if len(layer.inputs) > 2:
            stores = rounded_bias if _is_pt2e(last) else stored_bias
            bias = stores(layer.inputs[2], stored, weights, last.output.type)
            if bias is None:
                return ()
            inputs.append(bias)
        if activation is not None:
            assert isinstance(activation.op, Relu)
            op = replace(op, activation=activation.op.kind)
        op = replace(op, rescaling=_rescaling(last))
        return (replace(layer, op=op, inputs=tuple(inputs), outputs=last.outputs),)

    def _of_two(self, layer: Node, activation: Node | None, last: Node) -> tuple[Node, ...]:
        """Return a sum or product of two activations, rescaled by real numbers."""
        op, stored = layer.op, [self._stored(tensor) for tensor in layer.inputs]
        assert isinstance(op, Add | Sub | Mul | BatchMatmul)
        operands = tuple(tensor for tensor in stored if tensor is not None)
        if len(operands) < len(stored):
            return ()
        if isinstance(op, BatchMatmul):
            op = replace(op, rescaling=_rescaling(last))
            return (replace(layer, op=op, inputs=operands, outputs=last.outputs),)
        if op.activation is not Activation.NONE:
            return ()
        kind = Activation.NONE
        if activation is not None:
            assert isinstance(activation.op, Relu)
            kind = activation.op.kind
        op = replace(op, activation=kind, rescaling=_rescaling(last))
        return (replace(layer, op=op, inputs=operands, outputs=last.outputs),)

    def _rescaled(self, layer: Node, activation: Node | None, last: Node) -> tuple[Node, ...]:
        """Return a mean, sum or softmax of stored elements, rescaled by real numbers."""
        op, stored = layer.op, self._stored(layer.inputs[0])
        assert isinstance(op, AveragePool2D | Mean | Sum | Softmax)
        if stored is None or (isinstance(op, Softmax) and not _is_exact(stored, last.output)):
            return ()
        if activation is not None:
            assert isinstance(activation.op, Relu) and isinstance(op, AveragePool2D)
            op = replace(op, activation=activation.op.kind)
        # Exponentials are no integers: their quotients are rounded to float32 for both.
        rescaling = Rescaling.FLOAT32 if isinstance(op, Softmax) else _rescaling(last)
        op = replace(op, rescaling=rescaling)
        return (replace(layer, op=op, inputs=(stored,), outputs=last.outputs),)

    def _joined(self, layer: Node, last: Node) -> tuple[Node, ...]:
        """Return a concatenation or choice of stored elements, each at the scale of the result."""
        producers: dict[Tensor, Node] = {}
        parts = []
        for number, tensor in enumerate(layer.inputs):
            if tensor.dtype is DType.BOOL:  # what is chosen by
                parts.append(tensor)
                continue
            part = self._stored(tensor)
            if part is None:
                computed = self._quantised_part(layer, last, tensor, number)
                if not computed:
                    return ()
                part = computed[-1].output
                producers.update({node.output: node for node in computed})
            wanted = replace(part.type, quantization=last.output.type.quantization)
            if part.type != wanted and part not in producers:
                own = Tensor(f"{last.output.name}_part{number}", wanted)
                name = f"{layer.name}_part{number}"
                producers[part] = replace(_requantised(last, part, own), name=name)
            parts.append(producers[part].output if part in producers else part)
        joined = replace(layer, inputs=tuple(parts), outputs=last.outputs)
        return (*producers.values(), joined)

    def _quantised_part(
        self, layer: Node, last: Node, tensor: Tensor, number: int
    ) -> tuple[Node, ...]:
        """Return what gives the integers of a part that is computed in floats for a layer alone."""
        if self._producer(tensor, layer) is None:
            return ()
        own = Tensor(
            f"{last.output.name}_part{number}", replace(last.output.type, shape=tensor.shape)
        )
        name = f"{layer.name}_part{number}"
        quantised = replace(last, name=name, inputs=(tensor,), outputs=(own,))
        left, self._consumers[tensor] = dict(self.left), (quantised,)
        nodes = self._quantised(quantised)
        if not nodes:
            self.left, self._consumers[tensor] = left, (layer,)
        return nodes

    def _padded(self, layer: Node, last: Node) -> tuple[Node, ...]:
        """Return a padding of stored elements with what its number is stored as."""
        op, stored = layer.attributes(Pad), self._stored(layer.inputs[0])
        type_ = last.output.type
        is_known = len(layer.inputs) == 1 and not np.isnan(op.value)
        if stored is None or not is_known or stored.type.quantization != type_.quantization:
            return ()
        number = np.rint(np.float32(op.value) / np.float32(type_.quant.scale))
        added = np.clip(number + type_.quant.zero_point, type_.dtype.min, type_.dtype.max)
        padded = replace(op, value=int(added))
        return (replace(layer, op=padded, inputs=(stored,), outputs=last.outputs),)

    def _tabulated(self, layer: Node, activation: Node | None, last: Node) -> tuple[Node, ...]:
        """Return a table of all results of what computes on the elements of one tensor."""
        nodes = self._of_one_tensor(layer)
        if nodes is None:
            return ()
        if activation is not None:
            clamped = Tensor(f"{layer.output.name}_clamped", layer.output.type)
            nodes += (replace(activation, inputs=layer.outputs, outputs=(clamped,)),)
        nodes += (replace(last, inputs=nodes[-1].outputs),)
        stored = nodes[0].inputs[0]
        table = Tabulated(Region(stored, nodes).table())
        return (replace(layer, op=table, inputs=(stored,), outputs=last.outputs),)

    def _of_one_tensor(self, layer: Node) -> tuple[Node, ...] | None:
        """Return the nodes from the integers of one tensor to a layer, or None.

        Each computes an element from that element of the tensor, and from numbers that are known.
        """
        nodes: dict[Node, None] = {}

        def is_reached(tensor: Tensor, depth: int) -> bool:
            """Add what gives a tensor, in the order of running; return whether that is all."""
            node = self._made.get(tensor)
            if tensor.data is not None or node is None:
                return tensor.data is not None and tensor.type.elements == 1
            if node not in nodes and not isinstance(node.op, Dequantize):
                is_elementwise = record_of(node.op).has(Trait.ELEMENTWISE)
                if depth == _MOST_TABULATED or not is_elementwise:
                    return False
                if tensor.shape != layer.output.shape:
                    return False
                if not all(is_reached(operand, depth + 1) for operand in node.inputs):
                    return False
            nodes[node] = None
            return True

        if len(layer.outputs) > 1 or not is_reached(layer.output, 0):
            return None
        stored = {self._stored(n.output) for n in nodes if isinstance(n.op, Dequantize)}
        is_one = len(stored) == 1 and all(t and t.dtype is DType.INT8 for t in stored)
        return tuple(nodes) if is_one else None
