"""Operators of the user whose attributes are bytes: what `microtir.custom` makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from microtir.graph.ir import Array, Node
from microtir.operators.common.formula import WrittenFunction
from microtir.operators.common.quantization import UNUSED
from microtir.operators.common.shapes import declared_shapes
from microtir.operators.common.tflite_operands import MANY, Converted, Operands, TfliteReader
from microtir.operators.common.types import ANY_TYPES
from microtir.operators.custom.definition import Custom
from microtir.operators.definition import Definition
from microtir.operators.record import OperatorRecord

Reference: TypeAlias = Callable[..., Array | tuple[Array, ...]]
"""Function from the node and an array per input to one output, or to several."""


def custom_record(
    name: str,
    reference: Reference,
    function: WrittenFunction,
    macs: Callable[[Node], int] = lambda _node: 0,
    label: str = "custom",
) -> OperatorRecord:
    """Return the record of an operator that is what a function of the user computes.

    Args:
        name: as model files call it.
        reference: the meaning in numpy.
        function: the same in TIR.
        macs: multiply-accumulates of a node.
        label: part of the names of functions in C.
    """

    def read(operands: Operands) -> Converted:
        # Inputs that the file leaves out are not there.
        present = tuple(tensor for tensor in operands.inputs if tensor is not None)
        return Converted(Custom(record, operands.custom_options), present)

    record = OperatorRecord(
        Definition(
            Custom,
            types=ANY_TYPES,
            quantization=UNUSED,
            shapes=declared_shapes,
            inputs=(1, MANY),
            outputs=MANY,
            terms=_terms,
            macs=macs,
            title=name,
            label=label,
        ),
        lambda _op, node, *inputs: reference(node, *inputs),
        tflite=(TfliteReader(Custom, name, read, inputs=(0, MANY), outputs=MANY),),
        function=function,
    )
    return record


def _terms(node: Node) -> int:
    return sum(tensor.type.elements for tensor in node.inputs)
