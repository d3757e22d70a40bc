"""Define what LiteRT makes of a float layer with int8 weights: three operators.

The values of each part of an input, an image or a row of features, are bounded; the bounds give a
scale and, where it is asymmetric, a zero point; the stored integers are multiplied with the
weights, and the integer sums become floats again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common import problem, quantization, types
from microtir.operators.common.shapes import Shape, require
from microtir.operators.convolution import definition as convolution
from microtir.operators.definition import Definition
from microtir.operators.dense import definition as dense

Inner: TypeAlias = convolution.Conv2D | convolution.DepthwiseConv2D | dense.FullyConnected


@dataclass(frozen=True, slots=True)
class Bounds(Operator):
    """The least and the greatest value of each of `parts` equal parts of a tensor."""

    parts: int = 1


@dataclass(frozen=True, slots=True)
class DynamicQuantize(Operator):
    """Inputs: a tensor, and the bounds of its parts. Output: its elements as int8."""

    asymmetric: bool = False


@dataclass(frozen=True, slots=True)
class Hybrid(Operator):
    """A layer on what DynamicQuantize gives.

    Inputs: the int8 data, the layer's weights, the bounds of the parts of the data, and a float
    bias, if there is one.  `by_channel_first` says that a sum is multiplied by the scale of its
    channel and then by that of its part; else it is multiplied by the product of both.
    """

    layer: Inner = dense.FullyConnected()
    asymmetric: bool = False
    by_channel_first: bool = False


LOWEST, HIGHEST = -128, 127
SYMMETRIC_HIGHEST = 127


def inner(node: Node) -> Node:
    """Return the layer of a Hybrid with its own inputs: data, weights and perhaps a bias."""
    data, weights, _low, _high, *bias = node.inputs
    return replace(node, op=node.attributes(Hybrid).layer, inputs=(data, weights, *bias))


_LAYERS = {d.op: d for d in (*convolution.DEFINITIONS, *dense.DEFINITIONS)}


def _layer(node: Node) -> Definition:
    return _LAYERS[type(node.attributes(Hybrid).layer)]


def _terms(node: Node) -> int:
    terms = _layer(node).terms
    assert terms is not None
    return terms(inner(node))


def _macs(node: Node) -> int:
    macs = _layer(node).macs
    return node.output.type.elements * _terms(node) if macs is None else macs(inner(node))


def _bounds_shape(node: Node) -> tuple[Shape, ...]:
    parts, elements = node.attributes(Bounds).parts, node.inputs[0].type.elements
    require(parts > 0 and elements % parts == 0, f"{parts} parts of {elements} elements")
    return ((parts,), (parts,))


def _quantize_shape(node: Node) -> tuple[Shape, ...]:
    x, low, high = node.inputs
    require(low.shape == high.shape and len(low.shape) == 1, f"bounds of {low.shape} parts")
    require(x.type.elements % low.shape[0] == 0, f"{low.shape[0]} parts of {x.shape}")
    return (x.shape,)


def _hybrid_shape(node: Node) -> tuple[Shape, ...]:
    low, high = node.inputs[2:4]
    require(low.shape == high.shape and len(low.shape) == 1, f"bounds of {low.shape} parts")
    require(node.inputs[0].type.elements % low.shape[0] == 0, "parts that do not fill the data")
    require(node.inputs[1].is_constant, "weights that the model computes")
    return _layer(node).shapes(inner(node))


_LARGEST_PRODUCT = 128 * (HIGHEST - LOWEST)


def _sums_fit(node: Node) -> Iterator[problem.Problem]:
    most = DType.INT32.max // _LARGEST_PRODUCT
    if _terms(node) > most:
        yield problem.Problem(f"it adds {_terms(node)} products", f"at most {most}")


_F32, _I8 = DType.FLOAT32, DType.INT8

DEFINITIONS = (
    Definition(
        Bounds,
        types=types.TypeRule((types.TypeSignature((_F32,), _F32),)),
        quantization=quantization.UNUSED,
        shapes=_bounds_shape,
        outputs=2,
    ),
    Definition(
        DynamicQuantize,
        types=types.TypeRule((types.TypeSignature((_F32, _F32, _F32), _I8),)),
        quantization=quantization.UNUSED,
        shapes=_quantize_shape,
        inputs=(3, 3),
    ),
    Definition(
        Hybrid,
        types=types.TypeRule((types.TypeSignature((_I8, _I8, _F32), _F32),)),
        quantization=quantization.UNUSED,
        shapes=_hybrid_shape,
        inputs=(4, 5),
        multipliers=_sums_fit,
        terms=_terms,
        macs=_macs,
    ),
)
