"""Find products of 64 bits of two factors of 32, which CPUs as of Thumb-1 make of four."""

from __future__ import annotations

from microtir.config import CompilationConfig, Optimize, Target
from microtir.instruction_sets import instruction_set
from microtir.tir import build, ir
from microtir.tir.ir import BinaryOp
from microtir.tir.visitor import walk

_WORD = ir.DType.INT32.bits
_HALF = 1 << (_WORD - 1)


def has_short_products(target: Target) -> bool:
    """Return whether a CPU multiplies 32 bits, and a library's function 64."""
    return instruction_set(target.family).multiplies(target.features) == _WORD


def copies_products(config: CompilationConfig) -> bool:
    """Return whether products that are made of four are copied to where they are used."""
    return has_short_products(config.primary_target()) and config.optimize is Optimize.SPEED


def is_long_product(e: ir.Expr) -> bool:
    """Return whether a product of 64 bits has factors of 32."""
    match e:
        case ir.Binary(BinaryOp.MUL, a, b):
            return long_factor(a) is not None and long_factor(b) is not None
        case _:
            return False


def long_factor(e: ir.Expr) -> ir.Expr | None:
    """Return the value of 32 bits or fewer that a factor of 64 bits has; None if it has none."""
    match e:
        case ir.Cast(ir.DType.INT64, value) if is_signed(value) and value.dtype.bits <= _WORD:
            return value
        case ir.IntImm(value, ir.DType.INT64) if ir.DType.INT32.min <= value <= ir.DType.INT32.max:
            return ir.IntImm(value, ir.DType.INT32)
        case _:
            return None


def upper_word(e: ir.Expr) -> tuple[ir.Binary, int] | None:
    """Return the product whose upper word a value is, rounded, and what is added to the word."""
    match e:
        case ir.Cast(
            ir.DType.INT32,
            ir.Binary(
                BinaryOp.SHIFT_RIGHT,
                ir.Binary(BinaryOp.ADD, ir.Binary() as product, ir.IntImm(start)),
                ir.IntImm(32),
            ),
        ) if is_long_product(product) and start % (1 << _WORD) == _HALF:
            return product, start >> _WORD
        case _:
            return None


def named_upper_word(s: ir.Let) -> ir.Let:
    """Return a statement that names an upper word, not its product, if nothing else is used of it.

    The word is the sum of the upper one and the bit below.
    """
    match s:
        case ir.Let(var, product, ir.Let(name, value, body)) if is_long_product(product):
            if value == _sum_of_parts(var) and all(node is not var for node in walk(body)):
                rounded = build.shift_right(build.add(product, _HALF), _WORD)
                return ir.Let(name, build.cast(name.dtype, rounded), body)
    return s


def _sum_of_parts(product: ir.Var) -> ir.Expr:
    bit = build.bit_and(build.shift_right(product, _WORD - 1), 1)
    upper = build.cast(ir.DType.INT32, build.shift_right(product, _WORD))
    return build.add(upper, build.cast(ir.DType.INT32, bit))


def is_signed(e: ir.Expr) -> bool:
    """Return whether C computes a value as int32_t or int64_t."""
    dtype = e.dtype
    narrow = dtype is not ir.DType.BOOL and dtype.bits < _WORD
    return not dtype.is_float and (dtype.is_signed or narrow)
