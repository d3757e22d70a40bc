"""An elementwise operator is one row: definition, meaning, formula and readers follow from it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import numpy as np
import pytest

from microtir import custom
from microtir.dtype import DType
from microtir.errors import GraphError
from microtir.graph.ir import Node, Quantization, TensorType
from microtir.operators import OPERATORS, OperatorRecord, UserOperator
from microtir.operators.common.elementwise_formula import scalar
from microtir.operators.common.elementwise_meaning import of_stored, real
from microtir.operators.common.onnx_rows import readers_of
from microtir.operators.common.tflite_schema import BuiltinOperator, Options
from microtir.operators.common.types import equal_types
from microtir.operators.definition import Trait
from microtir.operators.elementwise import row
from microtir.rewrite.reference import evaluate
from microtir.rewrite.verify import verify
from tests.layering.source import package_modules, parse
from tests.support.graphs import graph, node, quant, tensor


@dataclass(frozen=True, slots=True)
class Cube(UserOperator):
    """x^3."""

    def own_record(self) -> OperatorRecord:
        """Return its row."""
        return CUBE


CUBE = row(
    Cube,
    real(lambda x: x**3, of_stored(lambda x: x**3)),
    scalar(lambda x: x * x * x, lambda _node: lambda x: x * x * x),
    equal_types(DType.FLOAT32, DType.INT8),
    tflite=BuiltinOperator.SQUARE,
    onnx="Cube",
)


def _node(dtype: DType, quantization: Quantization | None = None) -> Node:
    x, y = (tensor(name, (3,), dtype, quantization) for name in "xy")
    return node(Cube(), [x], y)


def test_its_definition_is_asked() -> None:
    """Types, traits and the number of inputs are those of the row."""
    definition = CUBE.definition
    assert (definition.op, definition.name, definition.inputs) == (Cube, "cube", (1, 1))
    assert definition.traits == {Trait.ELEMENTWISE, Trait.TABULATED}
    cube = _node(DType.INT32)
    with pytest.raises(GraphError, match="are int32 -> int32"):
        verify(graph([cube], cube.inputs, cube.outputs))


def test_its_meaning_is_evaluated() -> None:
    """Real numbers are rounded once; integers wrap."""
    x = np.array([-1.5, 0.1, 3.0], np.float32)
    (found,) = evaluate(_node(DType.FLOAT32), [x])
    np.testing.assert_array_equal(found, (x.astype(np.float64) ** 3).astype(np.float32))
    (found,) = evaluate(_node(DType.INT8, quant(1.0)), [np.array([-2, 0, 7], np.int8)])
    assert found.tolist() == [-8, 0, 343 - 256]


def test_its_formula_is_compiled() -> None:
    """C of the formula gives what the meaning says."""
    image = TensorType((1, 4, 6, 3), DType.FLOAT32)
    custom.check(Cube(), [image], [image], samples=2)


def test_its_readers_follow() -> None:
    """The operators of both formats are those of the row, with its number of inputs."""
    (reader,) = CUBE.tflite
    assert (reader.op, reader.code) == (Cube, BuiltinOperator.SQUARE)
    assert (reader.code, reader.options) == (BuiltinOperator.SQUARE, Options)
    others = [record for record in OPERATORS if not record.onnx]
    assert [(r.name, r.inputs) for r in readers_of([*others, CUBE])] == [("Cube", (1, 1))]


def _two_sided(tree: ast.AST) -> list[int]:
    """Lines of functions of a table of rows that use numpy and tensor expressions at once."""
    sides = ({"np", "meaning"}, {"te", "formula"})
    return [
        function.lineno
        for function in ast.walk(tree)
        if isinstance(function, ast.Lambda | ast.FunctionDef)
        and all(
            side & {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
            for side in sides
        )
    ]


def test_functions_of_rows_are_of_one_side() -> None:
    """A meaning beside a formula in a row does not call it, nor the other way round."""
    tables = [m for m in package_modules() if "microtir.operators.elementwise" in m.text]
    assert len(tables) > 0
    assert {m.path: lines for m in tables if (lines := _two_sided(m.tree))} == {}
    wrong = parse("a.py", "row(A, real(lambda x: np.abs(te.abs(x))), scalar(te.abs))")
    assert _two_sided(wrong.tree) == [1]
