"""Emit arithmetic, for readers of operators that are formulas of others; numbers are constants."""

from __future__ import annotations

from typing import TypeAlias

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.graph.operator import Operator
from microtir.operators.arithmetic.definition import Add, Maximum, Minimum, Mul, Sub
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.conditions import definition as conditions
from microtir.operators.division.definition import Div
from microtir.operators.selection.definition import Select

Operand: TypeAlias = "Tensor | float"


def _binary(
    node: OnnxNode, op: Operator, a: Operand, b: Operand, dtype: DType | None = None
) -> Tensor:
    if not isinstance(a, Tensor):
        assert isinstance(b, Tensor)
        a = node.scalar_like(a, b)
    if not isinstance(b, Tensor):
        b = node.scalar_like(b, a)
    return node.emit(op, a, b, dtype=dtype)


def add(node: OnnxNode, a: Operand, b: Operand) -> Tensor:
    """Emit a + b."""
    return _binary(node, Add(), a, b)


def sub(node: OnnxNode, a: Operand, b: Operand) -> Tensor:
    """Emit a - b."""
    return _binary(node, Sub(), a, b)


def mul(node: OnnxNode, a: Operand, b: Operand) -> Tensor:
    """Emit a * b."""
    return _binary(node, Mul(), a, b)


def div(node: OnnxNode, a: Operand, b: Operand) -> Tensor:
    """Emit a / b."""
    return _binary(node, Div(), a, b)


def least(node: OnnxNode, a: Operand, b: Operand) -> Tensor:
    """Emit the smaller of both."""
    return _binary(node, Minimum(), a, b)


def most(node: OnnxNode, a: Operand, b: Operand) -> Tensor:
    """Emit the larger of both."""
    return _binary(node, Maximum(), a, b)


def less(node: OnnxNode, a: Operand, b: Operand) -> Tensor:
    """Emit a < b."""
    return _binary(node, conditions.Less(), a, b, DType.BOOL)


def at_most(node: OnnxNode, a: Operand, b: Operand) -> Tensor:
    """Emit a <= b."""
    return _binary(node, conditions.LessEqual(), a, b, DType.BOOL)


def greater(node: OnnxNode, a: Operand, b: Operand) -> Tensor:
    """Emit a > b."""
    return _binary(node, conditions.Greater(), a, b, DType.BOOL)


def equal(node: OnnxNode, a: Operand, b: Operand) -> Tensor:
    """Emit a == b."""
    return _binary(node, conditions.Equal(), a, b, DType.BOOL)


def both(node: OnnxNode, a: Tensor, b: Tensor) -> Tensor:
    """Emit whether both conditions hold."""
    return node.emit(conditions.LogicalAnd(), a, b)


def choose(node: OnnxNode, condition: Tensor, a: Operand, b: Operand) -> Tensor:
    """Emit a where a condition holds, else b; one of them is a tensor."""
    if not isinstance(a, Tensor):
        assert isinstance(b, Tensor)
        a = node.scalar_like(a, b)
    if not isinstance(b, Tensor):
        b = node.scalar_like(b, a)
    return node.emit(Select(), condition, a, b, dtype=a.dtype)
