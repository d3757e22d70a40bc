"""The records of all operators, and what their families give to them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.graph.ir import Node, Quantization, SourceLocation, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.operators import OPERATORS, OperatorRecord, record_of
from microtir.operators.activations.definition import HardSwish, Tanh
from microtir.operators.conversion.definition import CastTo
from microtir.operators.definition import Trait
from microtir.operators.tables import has_table, lookup_table
from microtir.rewrite.reference import evaluate

FAMILIES = sorted({record.op.__module__.removesuffix(".definition") for record in OPERATORS})


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_of_a_family_is_lost(family: str) -> None:
    """What definition and readers of a family list is in its records.

    The rows of a family that has rows are its records.
    """
    records: tuple[OperatorRecord, ...] = import_module(family).RECORDS
    assert set(records) <= set(OPERATORS)
    definition = import_module(f"{family}.definition")
    if hasattr(definition, "DEFINITIONS"):
        assert [record.definition for record in records] == list(definition.DEFINITIONS)
        readers = [reader for record in records for reader in record.tflite]
        has_readers = find_spec(f"{family}.tflite") is not None
        assert readers == list(import_module(f"{family}.tflite").READERS if has_readers else ())


def test_every_operator_has_one_record() -> None:
    """Operators and names are listed once, and each is found by its attributes."""
    assert len({record.op for record in OPERATORS}) == len(OPERATORS)
    assert len({record.name for record in OPERATORS}) == len(OPERATORS)
    assert all(record_of(record.op()) is record for record in OPERATORS)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("Relu", "relu"),
        ("AddN", "add_n"),
        ("Atan2", "atan2"),
        ("DepthwiseConv2D", "depthwise_conv_2d"),
        ("L2Pool2D", "l2_pool_2d"),
    ],
)
def test_an_operator_is_called_as_its_class(words: str, name: str) -> None:
    """The name is that of the class in snake_case, unless the class has one."""
    derived: type[Operator] = type(words, (Operator,), {})
    assert derived.name == name
    own: type[Operator] = type(words, (derived,), {"name": "mine"})
    assert own.name == "mine"


@pytest.mark.parametrize("record", [r for r in OPERATORS if r.has(Trait.TABULATED)], ids=repr)
def test_tables_are_the_meaning(record: OperatorRecord) -> None:
    """The table of 256 results is what the operator means for each stored value."""
    x = TensorType((256,), DType.INT8, Quantization((0.05,), (3,)))
    fixed = {"logistic": (1 / 256, -128), "tanh": (1 / 128, 0)}
    scale, zero_point = fixed.get(record.name, (0.04, -7))
    y = TensorType((256,), DType.INT8, Quantization((scale,), (zero_point,)))
    op = record.op()
    tensors = Tensor("x", x), Tensor("y", y)
    node = Node(op, tensors[:1], tensors[1:], "node", SourceLocation("", 0, "X"))
    values = np.arange(-128, 128).astype(np.int8)
    assert has_table(op, x, y)
    np.testing.assert_array_equal(lookup_table(op, x, y), evaluate(node, [values])[0])


def test_other_types_have_no_table() -> None:
    """A table is for int8 to int8, of operators that compute."""
    int8, real = TensorType((4,), DType.INT8), TensorType((4,), DType.FLOAT32)
    assert not has_table(HardSwish(), real, real)
    assert not has_table(Tanh(), int8, real)
    assert not has_table(CastTo(), int8, int8)
