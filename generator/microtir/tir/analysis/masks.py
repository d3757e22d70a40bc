"""Find the choices by data that C can compute by a mask, without a comparison or a branch.

A mask is the sign of a difference in all bits.  Forms with masks take the same instructions for all
data on every CPU that shifts in one instruction, at any level of optimisation: an empty instruction
keeps compilers from turning them into choices again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from microtir.config import Target
from microtir.instruction_sets import instruction_set
from microtir.tir import ir
from microtir.tir.analysis.long_products import is_signed
from microtir.tir.ir import BinaryOp, Intrinsic
from microtir.tir.visitor import walk

ORDERED = frozenset({BinaryOp.LT, BinaryOp.LE, BinaryOp.GT, BinaryOp.GE})
MASKED_CALLS = frozenset({
    Intrinsic.SATURATING_ROUNDING_DOUBLING_HIGH_MUL, Intrinsic.ROUNDING_DIVIDE_BY_POT,
    Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER, Intrinsic.COUNT_LEADING_ZEROS,
})  # fmt: skip
_WORD = ir.DType.INT32.bits
_AT_HAND = 2  # operations of a value that compilers compute whether it is chosen or not
_TOTAL = frozenset({BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MIN, BinaryOp.MAX})


def takes_masks(target: Target) -> bool:
    """Return whether masks take as many instructions for all data on a CPU.

    A CPU that chooses by conditional instructions needs them, too: compilers branch there as well.
    """
    return instruction_set(target.family).shifts(target.features) > 0


def is_maskable(e: ir.Expr) -> bool:
    """Return whether a choice, or an operation with conditions in its C, has a form with masks."""
    match e:
        case ir.Binary(BinaryOp.MIN | BinaryOp.MAX, a):
            return is_signed(a)
        case ir.Select(ir.Binary(op, a), then, otherwise) if op in ORDERED:
            computed = {max(x.dtype.bits, _WORD) for x in (a, then, otherwise)}
            harmless = _is_harmless(then) and _is_harmless(otherwise)
            return harmless and len(computed) == 1 and all(map(is_signed, (a, then, otherwise)))
        case ir.Binary(BinaryOp.TRUNCDIV, a, b):
            return is_signed(a) and is_power(b)
        case ir.Binary(BinaryOp.SHIFT_LEFT, a, b):
            return a.dtype in (ir.DType.INT32, ir.DType.INT64) and not isinstance(b, ir.IntImm)
        case ir.Call(intrinsic):
            return intrinsic in MASKED_CALLS
        case _:
            return False


def is_data(e: ir.Expr, variables: Collection[ir.Var]) -> bool:
    """Return whether a value follows from what a run is given, or from variables that do."""
    return any(
        n in variables
        if isinstance(n, ir.Var)
        else isinstance(n, ir.Load) and n.buffer.scope is not ir.Scope.CONSTANT
        for n in walk(e)
    )


def data_variables(functions: Sequence[ir.PrimFunc]) -> frozenset[ir.Var]:
    """Return the variables that hold data in any call of functions, which are callees first."""
    by_name, data = {function.name: function for function in functions}, set[ir.Var]()
    for function in reversed(functions):
        if function.exported:
            data.update(p for p in function.params if isinstance(p, ir.Var))
        for node in walk(function):
            pairs: Iterable[tuple[ir.Param, ir.BufferView | ir.BufferArgument | ir.Expr]] = ()
            match node:
                case ir.Let(var, value):
                    pairs = [(var, value)]
                case ir.For(var, start, stop):
                    pairs = [(var, start), (var, stop)]
                case ir.Invoke(name, args):
                    pairs = zip(by_name[name].params, args, strict=True)
                case ir.KernelCall(meaning, args):
                    pairs = zip(meaning.params, args, strict=True)
                case _:
                    pass
            for param, arg in pairs:
                if isinstance(arg, ir.BufferView | ir.BufferArgument):
                    continue
                if isinstance(param, ir.Var) and is_data(arg, data):
                    data.add(param)
    return frozenset(data)


def is_power(e: ir.Expr) -> bool:
    """Return whether a value is known to be a power of two."""
    return isinstance(e, ir.IntImm) and e.value > 0 and e.value & (e.value - 1) == 0


def is_at_hand(e: ir.Expr) -> bool:
    """Return whether a value is read from no array, and computed by a few operations."""
    nodes = list(walk(e))
    arrays = any(isinstance(n, ir.Load) and n.buffer.shape for n in nodes)
    return not arrays and sum(isinstance(n, ir.Binary | ir.Call) for n in nodes) <= _AT_HAND


def _is_harmless(e: ir.Expr) -> bool:
    """Return whether a side may be computed where the other is chosen."""
    operations = (n for n in walk(e) if isinstance(n, ir.Binary | ir.Call))
    return is_at_hand(e) and all(isinstance(n, ir.Binary) and n.op in _TOTAL for n in operations)
