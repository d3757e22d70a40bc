"""Tensor expressions: kernels written as formulas, and the naive loop nests that they mean."""
# ruff: noqa: A004  # te.sum, te.max, te.abs ...: the names that numpy gives them

from microtir.te.expr import Expr, ExprLike, ReduceAxis, ScalarVar, Tensor, as_expr
from microtir.te.functions import (
    abs,
    apart,
    call,
    cast,
    clamp,
    const,
    count_leading_zeros,
    exp,
    floor,
    in_turn,
    log,
    maximum,
    minimum,
    multiply_by_quantized_multiplier,
    round,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
    saturating_shift_left,
    select,
    sqrt,
    tanh,
    truncdiv,
)
from microtir.te.program import create_prim_func, create_schedule
from microtir.te.reduction import bind, max, min, reduce_axis, sum
from microtir.te.tensor import compute, constant, placeholder, var

__all__ = [
    "Expr", "ExprLike", "ReduceAxis", "ScalarVar", "Tensor", "abs", "apart", "as_expr", "bind",
    "call", "cast", "clamp", "compute", "const", "constant", "count_leading_zeros",
    "create_prim_func", "create_schedule", "exp", "floor", "in_turn", "log", "max", "maximum",
    "min", "minimum", "multiply_by_quantized_multiplier", "placeholder", "reduce_axis", "round",
    "rounding_divide_by_pot", "saturating_rounding_doubling_high_mul", "saturating_shift_left",
    "select", "sqrt", "sum", "tanh", "truncdiv", "var",
]  # fmt: skip
