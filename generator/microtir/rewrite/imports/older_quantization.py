"""Operators of the older quantisation, in uint8, as such of int8.

A stored uint8 value less 128, with a zero point less 128, is an int8 value that stands for the same
number.  LiteRT's kernels of both types give the same bits where this module says so, and then the
fast kernels of int8 are there for both; what differs becomes a table, or stays an operator of
uint8.  Between both a QUANTIZE flips the highest bit.

Weights have a zero point here.  They become int8 or, where that does not hold them, int16.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Quantization, SourceLocation, Tensor, TensorType
from microtir.graph.names import short_name
from microtir.graph.operator import Operator
from microtir.graph.rewriting import Keeps, Rewrite
from microtir.operators import record_of
from microtir.operators.activations.curve_table import curve_table
from microtir.operators.activations.definition import (
    LOGISTIC_OF_INT8,
    HardSwish,
    LeakyRelu,
    Logistic,
    Prelu,
    Relu,
    Tanh,
)
from microtir.operators.arithmetic.definition import Add, Maximum, Minimum, Mul, Sub
from microtir.operators.common.attributes import Rescaling
from microtir.operators.common.centred_weights import centred_weights
from microtir.operators.common.multiplier import quantize_multiplier
from microtir.operators.conditions.definition import (
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
)
from microtir.operators.conversion.definition import Dequantize, Quantize, Tabulated
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.definition import Trait
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.division.definition import Div
from microtir.operators.movement import definition as movement
from microtir.operators.pooling.definition import MaxPool2D
from microtir.operators.reduction.definition import ArgMax, ArgMin, Mean, ReduceMax, ReduceMin, Sum
from microtir.operators.resize.definition import ResizeNearestNeighbor
from microtir.operators.selection.definition import Select
from microtir.operators.softmax.definition import LogSoftmax, Softmax
from microtir.operators.transposed_convolution.definition import TransposeConv
from microtir.rewrite.facts.rules import quantization, scalar_types
from microtir.rewrite.imports.older_tables import rescaling_table
from microtir.support.unique_names import UniqueNames

_HALF = 128

EXACT: frozenset[type[Operator]] = frozenset(
    {
        *(Add, Sub, Mul, Div, Minimum, Maximum, Prelu, Select),
        *(Equal, NotEqual, Greater, GreaterEqual, Less, LessEqual),
        *(Relu, LeakyRelu, HardSwish, Softmax, LogSoftmax, Quantize, Dequantize),
        *(Mean, Sum, ReduceMax, ReduceMin, ArgMax, ArgMin, MaxPool2D, ResizeNearestNeighbor),
        *(
            movement.Reshape,
            movement.Relabel,
            movement.Transpose,
            movement.Pack,
            movement.Unpack,
            movement.Split,
            movement.StridedSlice,
        ),
    }
)
"""Operators whose kernels of int8 and of uint8 give the same bits, 128 apart."""


class OlderQuantization(Rewrite):
    """Computes in int8 what the older quantisation has in uint8."""

    keeps = Keeps.NOTHING  # weights with a zero point have no meaning before

    def __call__(self, graph: Graph) -> Graph:
        if not any(map(_is_older, graph.nodes)):
            return graph
        names = UniqueNames(tensor.name for tensor in graph.tensors())
        labels = UniqueNames(node.name for node in graph.nodes)
        rewriter = _Rewriter(names, labels, graph.nodes[0].source.file)
        nodes = [new for node in graph.nodes for new in rewriter.nodes_of(node)]
        return replace(graph, nodes=(*nodes, *rewriter.stored(graph.outputs)))


def legal_form(node: Node) -> Node:
    """Return a node as `OlderQuantization` makes it of one, for checks."""
    if not _is_older(node):
        return node
    return _Rewriter(UniqueNames(), UniqueNames(), node.source.file).nodes_of(node)[-1]


def _is_older(node: Node) -> bool:
    tensors = (*node.inputs, *node.outputs)
    return any(t.dtype is DType.UINT8 for t in tensors) or _has_centre(node)


def _has_centre(node: Node) -> bool:
    """Return whether int8 weights have a zero point, as those of FULLY_CONNECTED may."""
    if not isinstance(node.op, FullyConnected):
        return False
    x, weights = node.inputs[:2]
    if not x.dtype is weights.dtype is DType.INT8 or not _is_constant_per_tensor(weights):
        return False
    return weights.type.quant.zero_point != 0


def _is_legal(node: Node) -> bool:
    """Return whether an operator takes tensors of uint8 as they are."""
    return not any(scalar_types(node)) and not any(quantization(node))


def _is_constant_per_tensor(tensor: Tensor) -> bool:
    quant = tensor.type.quantization
    return tensor.data is not None and quant is not None and not quant.is_per_channel


def _is_twinned(tensor: Tensor) -> bool:
    """Return whether an int8 tensor can stand for one."""
    quant = tensor.type.quantization
    return tensor.dtype is DType.UINT8 and quant is not None and not quant.is_per_channel


def _as_int8(type_: TensorType) -> TensorType:
    quant = type_.quant
    moved = Quantization(quant.scales, (quant.zero_point - _HALF,))
    return replace(type_, dtype=DType.INT8, quantization=moved)


@dataclass(slots=True)
class _Rewriter:
    """Rewrites nodes in their order, and knows which tensors are there in which type."""

    names: UniqueNames
    labels: UniqueNames
    file: str
    twins: dict[Tensor, Tensor] = field(default_factory=dict)  # int8 by uint8
    pending: dict[Tensor, None] = field(default_factory=dict)  # only there as int8, in order
    weights: dict[tuple[Tensor, float], Tensor] = field(default_factory=dict)

    def nodes_of(self, node: Node) -> list[Node]:
        """Return what stands for a node: the operator itself is the last one."""
        if record_of(node.op).has(Trait.CONTROL):
            # What is known on one side of it may not be there on the other.
            nodes = self.stored((*self.pending, *node.inputs))
            self.twins.clear()
            return [*nodes, node]
        rewritten = self._rewritten(node)
        return [*self.stored(node.inputs), node] if rewritten is None else rewritten

    def stored(self, tensors: Iterable[Tensor]) -> list[Node]:
        """Return the nodes that give tensors in the type of the file."""
        wanted = [tensor for tensor in dict.fromkeys(tensors) if tensor in self.pending]
        for tensor in wanted:
            del self.pending[tensor]
        return [self._flipped(self.twins[tensor], tensor) for tensor in wanted]

    def _flipped(self, source: Tensor, result: Tensor) -> Node:
        label = self.labels.take(f"{short_name(result.name)}_flipped")
        where = SourceLocation(self.file, -1, "QUANTIZE")
        return Node(Quantize(), (source,), (result,), label, where)

    def _rewritten(self, node: Node) -> list[Node] | None:
        if _has_centre(node):
            return [self._with_weights(node, node.inputs[0], node.outputs)]
        older = [t for t in (*node.inputs, *node.outputs) if t.dtype is DType.UINT8]
        if not older or not all(map(_is_twinned, older)):
            return None
        rewrite = _REWRITES.get(type(node.op), _plain if type(node.op) in EXACT else None)
        if rewrite is None:
            return None
        if _is_legal(node) and self.pending.keys().isdisjoint(node.inputs):
            return None
        return rewrite(self, node)

    # --- what rewriting is written with --------------------------------------------------------

    def twin(self, tensor: Tensor, before: list[Node]) -> Tensor:
        """Return the int8 tensor that stands for one; what makes it is added to `before`."""
        if not _is_twinned(tensor):
            return tensor
        if tensor not in self.twins:
            self.twins[tensor] = self._new(tensor)
            if tensor.data is None:
                before.append(self._flipped(tensor, self.twins[tensor]))
        return self.twins[tensor]

    def result(self, tensor: Tensor) -> Tensor:
        """Return the int8 tensor that a node gives in the place of its output."""
        if not _is_twinned(tensor):
            return tensor
        self.twins[tensor] = self._new(tensor)
        self.pending[tensor] = None
        return self.twins[tensor]

    def _new(self, tensor: Tensor) -> Tensor:
        data = tensor.data
        if data is not None:
            data = (data.astype(np.int16) - _HALF).astype(np.int8)
        return Tensor(self.names.take(f"{tensor.name}_int8"), _as_int8(tensor.type), data)

    def tabulated(self, tensor: Tensor, type_: TensorType, table: bytes, like: Node) -> Node:
        """Return the look-up of an int8 tensor."""
        output = Tensor(self.names.take(f"{tensor.name}_rescaled"), type_)
        label = self.labels.take(f"{like.name}_rescaled")
        return Node(Tabulated(table), (tensor,), (output,), label, like.source)

    def _with_weights(self, node: Node, x: Tensor, outputs: tuple[Tensor, ...]) -> Node:
        weights = node.inputs[1]
        scale = _scale_of_weights(node)
        key = weights, scale
        if key not in self.weights:
            name = self.names.take(f"{weights.name}_centred")
            centred = centred_weights(weights, name)
            quant = Quantization((scale,), (0,))
            centred = replace(centred, type=replace(centred.type, quantization=quant))
            self.weights[key] = centred
        inputs = (x, self.weights[key], *node.inputs[2:])
        return replace(node, inputs=inputs, outputs=outputs)

    def weighted(self, node: Node) -> list[Node] | None:
        """Rewrite an operator that multiplies by weights."""
        if not _is_constant_per_tensor(node.inputs[1]):
            return None
        before: list[Node] = []
        x = self.twin(node.inputs[0], before)
        outputs = tuple(self.result(tensor) for tensor in node.outputs)
        layer = self._with_weights(node, x, outputs)
        if isinstance(node.op, FullyConnected):  # LiteRT's kernel multiplies sums by a double
            layer = replace(layer, op=replace(node.op, rescaling=Rescaling.FLOAT64))
        return [*before, layer]


_Rewrite = Callable[[_Rewriter, Node], "list[Node] | None"]


def _plain(rewriter: _Rewriter, node: Node) -> list[Node]:
    """Rewrite an operator whose kernels of int8 do the same."""
    before: list[Node] = []
    inputs = tuple(rewriter.twin(tensor, before) for tensor in node.inputs)
    outputs = tuple(rewriter.result(tensor) for tensor in node.outputs)
    return [*before, replace(node, inputs=inputs, outputs=outputs)]


def _pad(rewriter: _Rewriter, node: Node) -> list[Node]:
    """Rewrite PAD, whose attribute is a stored value."""
    assert isinstance(node.op, movement.Pad)
    op = replace(node.op, value=node.op.value - _HALF)
    return _plain(rewriter, replace(node, op=op))


def _function(rewriter: _Rewriter, node: Node) -> list[Node]:
    """Rewrite LOGISTIC and TANH, of which LiteRT makes tables of float32 results.

    The result of LOGISTIC has one scale and any zero point, that of TANH any scale, too.
    """
    op = node.attributes(Logistic, Tanh)
    nodes = _plain(rewriter, node)
    source, output = node.inputs[0].type, node.output.type
    if isinstance(op, Logistic):
        output_scale = output.quantization
        is_legal = output_scale is not None and output_scale.scales == LOGISTIC_OF_INT8.scales
        if not is_legal or source.quantization is None:
            return nodes  # and the checks say what is wrong
    nodes[-1] = replace(nodes[-1], op=Tabulated(curve_table(op, source, output)))
    return nodes


def _concatenation(rewriter: _Rewriter, node: Node) -> list[Node]:
    """Rewrite CONCATENATION, which rescales inputs in uint8."""
    nodes = _plain(rewriter, node)
    joined, inputs = nodes.pop(), []
    quant, output = node.output.type.quantization, joined.output.type
    for operand, own in zip(node.inputs, joined.inputs, strict=True):
        if operand.type.quantization != quant:
            type_ = replace(output, shape=own.shape)
            table = rescaling_table(operand.type, node.output.type)
            nodes.append(rewriter.tabulated(own, type_, table, node))
        inputs.append(own if operand.type.quantization == quant else nodes[-1].output)
    return [*nodes, replace(joined, inputs=tuple(inputs))]


def _scale_of_weights(node: Node) -> float:
    """Return a scale of weights that gives the factor of LiteRT's kernel.

    In convolutions of uint8 it multiplies the scales of image and weights in float32.
    """
    own = node.inputs[1].type.quant.scale
    x, output = node.inputs[0].type, node.output.type
    if isinstance(node.op, FullyConnected) or x.quantization is None or x.quant.scale == 0:
        return own
    with np.errstate(over="ignore"):
        product = float(np.float32(x.quant.scale) * np.float32(own))
    if output.quantization is None or not 0 < product < math.inf:
        return own
    near = product / x.quant.scale
    wanted = quantize_multiplier(product / output.quant.scale)
    for scale in (near, math.nextafter(near, 0), math.nextafter(near, math.inf)):
        if quantize_multiplier(x.quant.scale * scale / output.quant.scale) == wanted:
            return scale
    return near


_REWRITES: Mapping[type[Operator], _Rewrite] = MappingProxyType(
    {
        Conv2D: _Rewriter.weighted,
        DepthwiseConv2D: _Rewriter.weighted,
        TransposeConv: _Rewriter.weighted,
        FullyConnected: _Rewriter.weighted,
        movement.Pad: _pad,
        movement.Concatenation: _concatenation,
        Logistic: _function,
        Tanh: _function,
    }
)
