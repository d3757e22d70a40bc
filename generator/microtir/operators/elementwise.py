"""Rows of elementwise operators: all that is known of one in a line, from which its record follows.

A row names the class of the attributes, the meaning in numpy, the formula in tensor expressions,
types and rules, and the operators of model formats that become it as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common import (
    arrays,
    problem,
    tflite_operands,
    tflite_schema,
    tflite_written,
    unlike_scales,
)
from microtir.operators.common import formula as common_formula
from microtir.operators.common.quantization import UNUSED, QuantizationRule
from microtir.operators.common.shapes import Shape, broadcast_shape, same_shape
from microtir.operators.common.types import TypeRule, equal_types
from microtir.operators.definition import Definition, SumsRule, Trait
from microtir.operators.record import OperatorRecord

_FLOAT = equal_types(DType.FLOAT32)


def row(
    op: type[Operator],
    meaning: arrays.Meaning,
    formula: common_formula.Formula,
    types: TypeRule = _FLOAT,
    quantization: QuantizationRule = UNUSED,
    *,
    inputs: int | tuple[int, int] = 1,
    shapes: Callable[[Node], tuple[Shape, ...]] | None = None,
    multipliers: problem.Rule | None = None,
    sums: SumsRule | None = None,
    traits: tuple[Trait, ...] = (),
    limits: str = "",
    tflite: tflite_schema.BuiltinOperator | tuple[tflite_operands.TfliteReader, ...] = (),
    options: type[tflite_schema.Options] = tflite_schema.Options,
    read: Callable[[tflite_operands.Operands], tflite_operands.Converted] | None = None,
    write: tflite_written.Write = tflite_written.as_it_is,
    fixed: tuple[unlike_scales.FixedResult, ...] = (),
    onnx: str = "",
) -> OperatorRecord:
    """Return the record of an elementwise operator.

    Args:
        op: the class of its attributes.
        meaning: in numpy; see `common/elementwise_meaning.py`.
        formula: in tensor expressions; see `common/elementwise_formula.py`.
        types: the legal scalar types.
        quantization: what the quantisation of integer tensors must be.
        inputs: how many there are, or the fewest and the most.
        shapes: gives the shape of the output; by default inputs broadcast as numpy's arrays.
        multipliers: finds scales whose ratios have no fixed-point form.
        sums: bounds the sums of a node on integers.
        traits: beside ELEMENTWISE, and TABULATED, which one input and output of int8 are.
        limits: in words, what is asked for beyond types and quantisation.
        tflite: the operator of TFLite files that becomes this one, or readers of several.
        options: its table of options, where that has fields.
        read: makes the attributes and picks the inputs; by default there are no attributes.
        write: the way back.
        fixed: what references do where the output has another quantisation than the results.
        onnx: the operator of ONNX files that becomes this one as it is.
    """
    fewest, most = (inputs, inputs) if isinstance(inputs, int) else inputs
    is_table = most == 1 and types.accepts((DType.INT8,), (DType.INT8,))
    definition = Definition(
        op,
        types=types,
        quantization=quantization,
        shapes=shapes or (same_shape if most == 1 else broadcast_shape),
        inputs=(fewest, most),
        multipliers=multipliers,
        sums=sums,
        traits=frozenset({Trait.ELEMENTWISE, *traits, *((Trait.TABULATED,) if is_table else ())}),
        limits=limits,
    )
    if isinstance(tflite, tflite_schema.BuiltinOperator):
        read = read or tflite_operands.without_attributes(op())
        reader = tflite_operands.TfliteReader(op, tflite, read, options, definition.inputs)
        tflite = (replace(reader, fixed=fixed, write=write),)
    return OperatorRecord(definition, meaning, formula, tflite, onnx=onnx)
