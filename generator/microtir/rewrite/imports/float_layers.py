"""Say which layers between conversions stay floats, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from microtir.dtype import DType
from microtir.graph.ir import Node, SourceLocation, Tensor
from microtir.operators import record_of
from microtir.operators.arithmetic.definition import Add, Mul, Sub
from microtir.operators.conversion.definition import Quantize
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.definition import Trait
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.movement.definition import Concatenation, Pad
from microtir.operators.pooling.definition import AveragePool2D
from microtir.operators.reduction.definition import Mean, Sum
from microtir.operators.selection.definition import Select
from microtir.operators.softmax.definition import Softmax
from microtir.operators.transposed_convolution.definition import TransposeConv
from microtir.rewrite.imports.stored_constants import stored_weights

_WITH_INTEGERS = (
    Add, AveragePool2D, BatchMatmul, Concatenation, Conv2D, FullyConnected, Mean, Mul, Pad, Select,
    Softmax, Sub, Sum, TransposeConv,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FloatLayer:
    """An operator that computes in floats between layers that compute in integers.

    Args:
        source: the operator of the file whose result becomes integers.
        why: it is no layer of integers.
        operators: positions in the file of all that has floats on its account: conversions, too.
        ram: bytes that its floats take beyond integers, where all of them live at once.
    """

    source: SourceLocation
    why: str
    operators: frozenset[int]
    ram: int

    def joined(self, other: FloatLayer) -> FloatLayer:
        """Return the layer with what another of its results has in floats."""
        operators, ram = self.operators | other.operators, max(self.ram, other.ram)
        return FloatLayer(self.source, self.why, operators, ram)


def float_layer(
    layer: Node, stored: Sequence[Tensor | None], region: Sequence[Node], last: Node
) -> FloatLayer:
    """Return what is said of a layer that stayed.

    Args:
        layer: whose result is quantised.
        stored: the integers of each of its operands, where there are some.
        region: the nodes between integers: conversions of operands, and what computes on floats.
        last: what quantises the result.
    """
    tensors = {output for node in region for output in node.outputs}
    elements = sum(tensor.type.elements for tensor in tensors)
    operators = frozenset(node.source.index for node in (*region, last))
    more = DType.FLOAT32.bytes - last.output.dtype.bytes
    return FloatLayer(layer.source, _why(layer, stored, last), operators, more * elements)


def _why(layer: Node, stored: Sequence[Tensor | None], last: Node) -> str:
    op, result = layer.op, last.output
    is_one_element = record_of(op).has(Trait.ELEMENTWISE) and len(layer.inputs) == 1
    is_pt2e = isinstance(last.op, Quantize) and last.op.by_reciprocal
    is_of_pt2e = isinstance(op, BatchMatmul | TransposeConv) and not is_pt2e
    if is_of_pt2e or not (isinstance(op, _WITH_INTEGERS) or is_one_element):
        return "no integer version of it exists"
    types = {tensor.dtype for tensor in stored if tensor is not None} | {result.dtype}
    if len(types) > 1:
        return "its operands and result have integers of different widths"
    if isinstance(op, Add | Sub | Mul | BatchMatmul):
        return "an operand is a constant, or is not quantised with a single scale"
    if isinstance(op, Concatenation | Select):
        return "an input is not quantised with a single scale"
    if stored[0] is None:
        return "its input is not quantised with a single scale"
    if isinstance(op, Conv2D | FullyConnected | TransposeConv):
        if stored_weights(layer.inputs[1]) is None:
            return (
                "its weights are not constants, or exceed int8 after subtraction of the zero point"
            )
        return (
            "its bias is not quantised with the product of both scales, or is too large for float32"
        )
    if isinstance(op, Pad):
        return "its result has another scale"
    if isinstance(op, Softmax) and result.dtype is DType.INT16:
        return "no integer version of an int16 softmax exists"
    if isinstance(op, AveragePool2D | Mean | Sum | Softmax):
        return "the scale of its result is below 2^-12"
    return "no integer version of it exists"
