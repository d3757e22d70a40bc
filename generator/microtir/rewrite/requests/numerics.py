"""Layers that references compute in different ways, as the one computes them that is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from microtir.config.enums import Numerics
from microtir.dtype import DType
from microtir.errors import Fix, UnsupportedModelError
from microtir.graph.ir import Graph, Node, Quantization, Tensor, TensorType
from microtir.graph.names import brief
from microtir.graph.rewriting import Keeps, Rewrite, named_apart, with_nodes
from microtir.operators import record_of
from microtir.operators.activations.curve_table import curve_table
from microtir.operators.activations.definition import LeakyRelu, Logistic, Prelu, Relu, Tanh
from microtir.operators.arithmetic.definition import Mul
from microtir.operators.common.attributes import Activation, RescaledOperator, Rescaling
from microtir.operators.common.linear import rescaling_of
from microtir.operators.common.quantization import quantization_text
from microtir.operators.common.unlike_scales import UnlikeScales
from microtir.operators.conversion.definition import Quantize, Tabulated
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D, groups_of
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.division.definition import Div
from microtir.operators.hybrid.definition import Bounds, DynamicQuantize, Hybrid, Inner
from microtir.operators.movement.definition import Relabel
from microtir.operators.normalization.definition import NORMALIZED_OF_INT8, L2Normalize
from microtir.operators.pooling.definition import AveragePool2D, is_whole_image
from microtir.operators.recurrent.definition import GATES, Lstm, Svdf
from microtir.operators.reduction.definition import Mean
from microtir.operators.softmax.definition import SOFTMAX_OF_INT8, Softmax
from microtir.operators.unary.definition import Abs, Rsqrt
from microtir.rewrite.requests.recurrent_layers import layers_of_lstm, layers_of_svdf
from microtir.rewrite.requests.unlike_scales import name_in_model


@dataclass(frozen=True, slots=True)
class ChooseNumerics(Rewrite):
    """Has layers as a reference computes them.

    With `tflm`, which has no hybrid layers, they are float layers whose weights are widened.  With
    `tflite_ref` their input is quantised while the model runs: an image, or a row of features, has
    a scale of its own.  What a recurrent layer multiplies by weights of int8 in a step is a layer
    like any other then.  FULLY_CONNECTED of integers multiplies its sums by a double there.
    Integers of ONNX are rescaled in fixed point with both.

    Args:
        numerics: the reference.

    Raises:
        UnsupportedModelError: LiteRT reads memory behind the scales of the weights, or onnxruntime
            has no layer that rescales integers in fixed point.
    """

    numerics: Numerics
    keeps = Keeps.NOTHING

    def __call__(self, graph: Graph) -> Graph:
        if self.numerics is Numerics.MODEL:
            return graph
        if self.numerics in (Numerics.ONNXRUNTIME, Numerics.PT2E):
            _check_float_rescaling(graph, self.numerics)
            return graph if self.numerics is Numerics.PT2E else _in_float32(graph)
        if self.numerics in _REFUSED_BY:
            _check_scales(graph, self.numerics)
        if rescales_as_onnx(graph):
            nodes = [lowered for node in graph.nodes for lowered in _in_fixed_point(node)]
            graph = named_apart(with_nodes(graph, nodes))
        if self.numerics is not Numerics.TFLITE_REF:
            return graph
        graph = with_nodes(graph, _rescaled_in_place(graph))
        layers = (layer for node in graph.nodes for layer in _layers_of(node))
        return named_apart(with_nodes(graph, [n for layer in layers for n in _as_litert(layer)]))


_AS_ONNX = (Rescaling.FLOAT32, Rescaling.EXACT)


def rescales_as_onnx(graph: Graph) -> bool:
    """Return whether an operator of a graph rescales integers as ONNX's and PT2E's do."""
    return any(rescaling_of(node) in _AS_ONNX for node in graph.nodes)


def _in_float32(graph: Graph) -> Graph:
    """Return a graph with what PT2E rescales exactly rescaled in float32."""
    nodes = [
        replace(node, op=node.op.rescaled(Rescaling.FLOAT32))
        if isinstance(node.op, RescaledOperator) and node.op.rescaling is Rescaling.EXACT
        else node
        for node in graph.nodes
    ]
    return with_nodes(graph, nodes)


def made_for(graph: Graph) -> Numerics:
    """Return the reference that a model was made for."""
    if any(isinstance(node.op, Quantize) and node.op.by_reciprocal for node in graph.nodes):
        return Numerics.PT2E
    return Numerics.ONNXRUNTIME if rescales_as_onnx(graph) else Numerics.TFLM


def _in_fixed_point(node: Node) -> tuple[Node, ...]:
    """Return a node as TFLite rescales its integers, where its scales have a fixed-point form.

    Where TFLite has no operator of these scales, the mean of an image is MEAN, a SOFTMAX of its own
    scale is rescaled behind it, and all else stays.
    """
    op = node.op
    if not isinstance(op, RescaledOperator) or op.rescaling not in _AS_ONNX:
        return (node,)
    op = op.rescaled(Rescaling.FIXED_POINT)
    scales = [tensor.type.quantization for tensor in (node.inputs[0], node.output)]
    if isinstance(op, AveragePool2D) and scales[0] != scales[1]:
        if not is_whole_image(node) or op.activation is not Activation.NONE:
            return (node,)
        op = Mean(axes=(1, 2), keep_dims=True)
    changed: tuple[Node, ...] = (replace(node, op=op),)
    if isinstance(op, Softmax) and scales[1] != SOFTMAX_OF_INT8:
        changed = _rescaled_behind(replace(node, op=op), SOFTMAX_OF_INT8)
    return changed if all(map(_has_fixed_point, changed)) else (node,)


def _rescaled_behind(node: Node, computed: Quantization) -> tuple[Node, Node]:
    """Return a node that computes at a scale, and what gives its result the one that it had."""
    between = Tensor(
        f"{node.output.name}_computed", replace(node.output.type, quantization=computed)
    )
    name = f"{node.name}_requantised"
    behind = replace(node, op=Quantize(), inputs=(between,), name=name)
    return replace(node, outputs=(between,)), behind


def _has_fixed_point(node: Node) -> bool:
    """Return whether TFLite has an operator of these scales; its int16 has the zero point 0."""
    definition = record_of(node.op).definition
    rules = [definition.quantization.check, definition.multipliers]
    return not any(problem for rule in rules if rule is not None for problem in rule(node))


def _check_float_rescaling(graph: Graph, numerics: Numerics) -> None:
    if rescales_as_onnx(graph):
        return
    for node in graph.nodes:
        are_integers = node.inputs[0].dtype.is_int and node.output.dtype.is_int
        is_rescaled = isinstance(node.op, RescaledOperator) and not _keeps_scale(node)
        if is_rescaled and are_integers and node.output.type.quantization:
            raise UnsupportedModelError(
                "the operator rescales integers in fixed point, as in TFLite, but operators of "
                "ONNX do not",
                where=str(node.source),
                legal=f"numerics '{numerics.value}' only for operators of its reference",
                fix="compile with numerics 'model' or 'tflm'",
            )


def _keeps_scale(node: Node) -> bool:
    """Return whether a node gives integers another zero point at most, as int8 and uint8 have."""
    if not isinstance(node.op, Quantize) or node.inputs[0].type.quantization is None:
        return False
    return node.inputs[0].type.quant.scales == node.output.type.quant.scales


# Who it is, how it reads scales for each channel, and who may compute it.
_REFUSED_BY = {
    Numerics.TFLM: ("tflite-micro", "the first one", Numerics.TFLITE_REF),
    Numerics.TFLITE_REF: ("LiteRT", "a scale of 0", Numerics.TFLM),
}


def _check_scales(graph: Graph, numerics: Numerics) -> None:
    """Refuse an operator whose scales the reference compares, and the other one does not."""
    who, channels, other = _REFUSED_BY[numerics]
    for node in graph.nodes:
        scales = _refused_scales(node, numerics)
        if scales is not None:
            expected, actual = map(quantization_text, scales)
            rescales = isinstance(node.op, Relabel) and (
                UnlikeScales.RESCALES in (node.op.by_micro, node.op.by_litert)
            )
            does = "rescales" if rescales else "copies integers"
            what = f"stored with {expected}, and its output has {actual}, which {who} refuses"
            several = [quant for quant in scales if quant is not None and quant.is_per_channel]
            if several:
                does = "computes it"
                what = f"stored with {quantization_text(several[0])}: {who} reads {channels}"
            raise UnsupportedModelError(
                f"the integers of the operator are {what}",
                where=f"{node.source} ({brief(name_in_model(node))!r})",
                legal="one scale and one zero point for all elements",
                fix=Fix(
                    f"convert the model again, or use numerics '{other.value}', which {does} there",
                    f"convert the model again, or use --numerics {other.value}, which {does} there",
                ),
            )


def _refused_scales(
    node: Node, numerics: Numerics
) -> tuple[Quantization | None, Quantization | None] | None:
    """Return the two scales that a reference finds different in a node and refuses."""
    op = node.op
    if isinstance(op, Relabel):
        does = op.by_micro if numerics is Numerics.TFLM else op.by_litert
        scales = node.inputs[0].type.quantization, node.output.type.quantization
        return scales if does is UnlikeScales.REFUSES else None
    if isinstance(op, L2Normalize) and numerics is Numerics.TFLITE_REF:
        output_scale = node.output.type.quantization
        if node.output.dtype is DType.INT8 and output_scale != NORMALIZED_OF_INT8:
            return NORMALIZED_OF_INT8, output_scale
    return None


def _rescaled_in_place(graph: Graph) -> list[Node]:
    """Return the nodes with an operator that rescales for one whose results are relabelled."""
    producers = graph.producers()
    rescaled = {
        producers[node.inputs[0]]: node
        for node in graph.nodes
        if isinstance(node.op, Relabel) and node.op.by_litert is UnlikeScales.RESCALES
    }
    gone = set(rescaled.values())
    return [
        replace(node, outputs=rescaled[node].outputs) if node in rescaled else node
        for node in graph.nodes
        if node not in gone
    ]


def _layers_of(node: Node) -> Iterable[Node]:
    """Return the layers that a recurrent one multiplies by weights of int8 with; else itself."""
    weights: tuple[Tensor, ...] = ()
    if isinstance(node.op, Lstm):
        weights = node.inputs[3 : 3 + 2 * GATES]
    elif isinstance(node.op, Svdf):
        weights = node.inputs[2:3]
    if node.inputs[0].dtype is not DType.FLOAT32 or all(w.dtype is not DType.INT8 for w in weights):
        return (node,)
    quantizations = [w.type.quantization for w in weights]
    if any(q is not None and q.is_per_channel for q in quantizations):
        raise UnsupportedModelError(
            "the weights of a gate have several scales, but LiteRT reads only one",
            where=str(node.source),
            legal="one scale for the weights of a gate",
            fix="compile with numerics 'tflm'",
        )
    return layers_of_lstm(node) if isinstance(node.op, Lstm) else layers_of_svdf(node)


_OF_FLOAT32_RATIO = (Relu, LeakyRelu, Prelu, Abs, Mul, Div)
"""Operators whose factor LiteRT computes in float32."""


def _as_litert(node: Node) -> Iterator[Node]:
    op = node.op
    if isinstance(op, FullyConnected) and node.inputs[0].dtype in (DType.INT8, DType.INT16):
        yield replace(node, op=replace(op, rescaling=Rescaling.FLOAT64))
        return
    if isinstance(op, _OF_FLOAT32_RATIO) and node.inputs[0].dtype.is_int:
        yield replace(node, op=replace(op, float32_ratio=True))
        return
    if isinstance(op, Rsqrt) and node.output.dtype is DType.INT16:
        yield replace(node, op=Rsqrt(by_table=True))
        return
    if isinstance(op, Logistic | Tanh) and node.output.dtype is DType.INT8:
        table = curve_table(op, node.inputs[0].type, node.output.type)
        yield replace(node, op=Tabulated(table))
        return
    if not isinstance(op, Inner) or not _is_hybrid(node):
        yield node
        return
    data, weights, *bias = node.inputs
    parts = data.shape[0] if not isinstance(op, FullyConnected) else (
        data.type.elements // weights.shape[1]
    )  # fmt: skip
    asymmetric = _is_asymmetric(node, op)
    low, high = (
        Tensor(f"{node.output.name}_{end}", TensorType((parts,), DType.FLOAT32))
        for end in ("low", "high")
    )
    stored = Tensor(f"{node.output.name}_stored", TensorType(data.shape, DType.INT8))
    yield replace(
        node, op=Bounds(parts), inputs=(data,), outputs=(low, high), name=f"{node.name}_bounds"
    )
    yield replace(
        node,
        op=DynamicQuantize(asymmetric),
        inputs=(data, low, high),
        outputs=(stored,),
        name=f"{node.name}_stored",
    )
    by_channel = asymmetric and isinstance(op, Conv2D)
    hybrid = Hybrid(op, asymmetric, by_channel)
    yield replace(node, op=hybrid, inputs=(stored, weights, low, high, *bias))


def _is_hybrid(node: Node) -> bool:
    data, weights = node.inputs[:2]
    return data.dtype is DType.FLOAT32 and weights.dtype is DType.INT8 and weights.is_constant


def _is_asymmetric(node: Node, op: Inner) -> bool:
    """Return how LiteRT quantises the input of a layer.

    Convolutions do it symmetrically if their weights have one scale, depthwise and grouped ones
    never; the others say what they do.
    """
    if isinstance(op, FullyConnected):
        return op.asymmetric
    scales = node.inputs[1].type.quant.scales
    by_channel = isinstance(op, DepthwiseConv2D) or groups_of(node) != 1
    if by_channel and len(scales) != node.output.shape[-1]:
        raise UnsupportedModelError(
            f"the weights have {len(scales)} scale for {node.output.shape[-1]} channels, but LiteRT"
            " reads a scale for each channel",
            where=str(node.source),
            legal="a scale for each channel",
            fix="compile with numerics 'tflm', or convert with weights quantised per channel",
        )
    return by_channel or len(np.unique(scales)) > 1
