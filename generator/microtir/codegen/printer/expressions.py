"""Prints TIR expressions as C.

Two facts shape this file.  TIR arithmetic is exact in the type of its operands, while C computes
8- and 16-bit operands as `int`, which may have only 16 bits: every operand of a wider operation
therefore gets its type by a cast.  And what C leaves undefined or to the compiler is never
printed: a negative value shifted left is a multiplication, a signed shift to the right is a call
of one helper, a division that rounds down is a call unless both operands are known not to be
negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType

from microtir.codegen.printer import c_types
from microtir.codegen.printer.helpers import (
    LONG_PRODUCT,
    MATH_FUNCTIONS,
    MATH_HELPERS,
    UPPER_WORD,
    typed_name,
    with_dependencies,
)
from microtir.codegen.printer.names import ScopedNames
from microtir.dtype import DType
from microtir.tir import build, ir
from microtir.tir.analysis.bounds import Bounds
from microtir.tir.analysis.long_products import is_long_product, long_factor, upper_word
from microtir.tir.analysis.masks import is_data, is_maskable


class Precedence(IntEnum):
    """The binding strength of C's operators, as far as they are printed."""

    CONDITIONAL = 1
    OR = 2
    AND = 3
    BIT_OR = 4
    BIT_XOR = 5
    BIT_AND = 6
    EQUALITY = 7
    RELATIONAL = 8
    SHIFT = 9
    ADDITIVE = 10
    MULTIPLICATIVE = 11
    UNARY = 12
    PRIMARY = 13


@dataclass(frozen=True, slots=True)
class CText:
    """A printed expression; `c_type` is None where C computes with `int`: literals, promotions."""

    text: str
    precedence: Precedence = Precedence.PRIMARY
    c_type: DType | None = None

    def within(self, least: Precedence) -> str:
        """Return the text, in parentheses if it binds less than `least`."""
        return self.text if self.precedence >= least else f"({self.text})"


_ARITHMETIC: Mapping[ir.BinaryOp, tuple[str, Precedence]] = MappingProxyType({
    ir.BinaryOp.ADD: ("+", Precedence.ADDITIVE),
    ir.BinaryOp.SUB: ("-", Precedence.ADDITIVE),
    ir.BinaryOp.MUL: ("*", Precedence.MULTIPLICATIVE),
    ir.BinaryOp.DIV: ("/", Precedence.MULTIPLICATIVE),
    ir.BinaryOp.TRUNCDIV: ("/", Precedence.MULTIPLICATIVE),
})  # fmt: skip
_BITWISE: Mapping[ir.BinaryOp, tuple[str, Precedence]] = MappingProxyType({
    ir.BinaryOp.BIT_AND: ("&", Precedence.BIT_AND),
    ir.BinaryOp.BIT_OR: ("|", Precedence.BIT_OR),
    ir.BinaryOp.BIT_XOR: ("^", Precedence.BIT_XOR),
})  # fmt: skip
_COMPARISONS: Mapping[ir.BinaryOp, Precedence] = MappingProxyType({
    ir.BinaryOp.EQ: Precedence.EQUALITY,
    ir.BinaryOp.NE: Precedence.EQUALITY,
    ir.BinaryOp.LT: Precedence.RELATIONAL,
    ir.BinaryOp.LE: Precedence.RELATIONAL,
    ir.BinaryOp.GT: Precedence.RELATIONAL,
    ir.BinaryOp.GE: Precedence.RELATIONAL,
})  # fmt: skip


@dataclass(slots=True)
class Requirements:
    """The helpers and headers that the printed text needs from its file."""

    helpers: set[str]
    math: bool = False
    double: bool = False  # some numbers are computed in it
    floats: bool = False  # some numbers are computed in float or double

    @property
    def fuses_floats(self) -> bool:
        """Return whether a product and its sum are rounded once anywhere."""
        fused = ir.Intrinsic.FUSED_MULTIPLY_ADD.value
        return any(helper.name == fused for helper in with_dependencies(self.helpers))


# Above it the dividend is no index, of which little more is known than its type.
_MOST_RAISED = 1 << 12


class ExpressionPrinter:
    """Prints the expressions of one function.

    Args:
        names: the names visible where the expression stands.
        requirements: grows by the helpers and headers that the text needs.
        bounds: intervals of integer expressions, with the ranges of the visible Vars.
        readers: the macros that read constants, by type; none where they are plain arrays.
        data: the variables that hold data, if no choice by data may be a branch.
        parted: whether products of 64 bits are made of short ones.
    """

    def __init__(
        self,
        names: ScopedNames,
        requirements: Requirements,
        bounds: Bounds,
        readers: Mapping[DType, str] = MappingProxyType({}),
        *,
        data: frozenset[ir.Var] | None = None,
        parted: bool = False,
    ) -> None:
        self.names = names
        self.requirements = requirements
        self._bounds = bounds
        self._readers = readers
        self._data = data
        self._parted = parted

    def _is_masked(self, e: ir.Expr) -> bool:
        return self._data is not None and is_maskable(e) and is_data(e, self._data)

    def value(self, e: ir.Expr) -> str:
        """Return text for a place of exactly the expression's type: a store, a Let, an argument."""
        printed = self.expr(e)
        if (
            isinstance(e, ir.IntImm)
            or not c_types.is_promoted(e.dtype)
            or printed.c_type is e.dtype
        ):
            return printed.text
        return _cast(printed, e.dtype).text

    def condition(self, e: ir.Expr) -> str:
        """Return the text of a BOOL expression inside the parentheses of an `if`."""
        return self.expr(e).text

    def element(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> str:
        """Return the text of an element, as a value or as the target of an assignment."""
        name = self.names.of(buffer)
        if buffer.scope is ir.Scope.LOCAL and not buffer.shape:
            return name
        index = self.expr(build.linear_index(buffer, indices)).text
        if buffer.scope is ir.Scope.CONSTANT and buffer.dtype in self._readers:
            return f"{self._readers[buffer.dtype]}({name}, {index})"
        return f"{name}[{index}]"

    def expr(self, e: ir.Expr) -> CText:
        self.requirements.double |= e.dtype is DType.FLOAT64
        match e:
            case ir.Var():
                return CText(self.names.of(e), c_type=e.dtype)
            case ir.IntImm(value, dtype):
                text = c_types.integer_literal(value, dtype)
                return CText(text, Precedence.UNARY if text[0] == "-" else Precedence.PRIMARY)
            case ir.FloatImm(value, dtype):
                self.requirements.math |= c_types.needs_math_header(value)
                text = c_types.float_literal(value, dtype)
                level = Precedence.UNARY if text[0] == "-" else Precedence.PRIMARY
                return CText(text, level, dtype)
            case ir.Load(buffer, indices) if e.dtype is DType.BOOL and buffer.data is None:
                # A caller may leave any byte where a bool is expected.
                return CText(f"{self.element(buffer, indices)} != 0", Precedence.EQUALITY)
            case ir.Load(buffer, indices):
                return CText(self.element(buffer, indices), c_type=e.dtype)
            case ir.Cast() if self._parted and (word := upper_word(e)) is not None:
                return self._upper_word(*word)
            case ir.Cast(dtype, value):
                printed = self.expr(value)
                return printed if printed.c_type is dtype else _cast(printed, dtype)
            case ir.Unary(op, a):
                return self._unary(op, self.expr(a), a.dtype)
            case ir.Select():
                return self._select(e)
            case ir.Call():
                self.requirements.floats |= e.dtype.is_float
                return self._call(e)
            case ir.Binary():
                self.requirements.floats |= e.dtype.is_float
                return self._binary(e)

    def _unary(self, op: ir.UnaryOp, a: CText, dtype: DType) -> CText:
        if op is ir.UnaryOp.NOT:
            return CText(f"!{a.within(Precedence.UNARY)}", Precedence.UNARY)
        operand = _widened(a, dtype).within(Precedence.UNARY)
        if operand.startswith("-"):
            operand = f"({operand})"
        return CText(f"-{operand}", Precedence.UNARY, _computed(dtype))

    def _select(self, e: ir.Select) -> CText:
        if self._is_masked(e) and isinstance(e.condition, ir.Binary):
            return self._masked_select(e, e.condition)
        condition = self.expr(e.condition).within(Precedence.OR)
        then, otherwise = self.expr(e.then), self.expr(e.otherwise)
        # C converts both to their common type: that of TIR unless both are literals.
        types = {then.c_type, otherwise.c_type} - {None}
        c_type = e.dtype if types and not c_types.is_promoted(e.dtype) else None
        text = f"{condition} ? {then.within(Precedence.OR)} : {otherwise.within(Precedence.OR)}"
        return CText(text, Precedence.CONDITIONAL, c_type)

    def _masked_select(self, e: ir.Select, condition: ir.Binary) -> CText:
        """Return a choice by the mask of `<`, to which the other comparisons are led back."""
        a, b, sides = condition.a, condition.b, [e.then, e.otherwise]
        if condition.op in (ir.BinaryOp.GT, ir.BinaryOp.LE):
            a, b = b, a
        if condition.op in (ir.BinaryOp.LE, ir.BinaryOp.GE):
            sides.reverse()
        name = self._helper(typed_name("masked_select", e.dtype))
        less = self._helper(typed_name("less_mask", a.dtype))
        operands = f"{self.expr(a).text}, {self.expr(b).text}"
        text = f"{name}({less}({operands}), {', '.join(self.expr(side).text for side in sides)})"
        return CText(text, c_type=_computed(e.dtype))

    def _call(self, e: ir.Call) -> CText:
        name = MATH_FUNCTIONS.get(e.intrinsic)
        if name is not None:
            self.requirements.math = True
        else:
            masked = "masked_" if self._is_masked(e) else ""
            name = self._helper(f"{masked}{e.intrinsic.value}")
            self.requirements.math |= e.intrinsic in MATH_HELPERS
        arguments = ", ".join(self.value(a) for a in e.args)
        return CText(f"{name}({arguments})", c_type=e.dtype)

    def _helper(self, name: str) -> str:
        self.requirements.helpers.add(name)
        return name

    def _typed_call(self, operation: str, e: ir.Binary) -> CText:
        name = self._helper(typed_name(operation, e.a.dtype))
        text = f"{name}({self.expr(e.a).text}, {self.expr(e.b).text})"
        return CText(text, c_type=_computed(e.a.dtype))

    def _mask_prefix(self, e: ir.Binary) -> str:
        """Return how the name of a helper begins: some need a difference that fits its type."""
        if not self._is_masked(e):
            return ""
        a, b = self._bounds.of(e.a), self._bounds.of(e.b)
        dtype = DType.INT32 if c_types.is_promoted(e.a.dtype) else e.a.dtype
        fits = a.high - b.low <= dtype.max and a.low - b.high >= dtype.min
        return "masked_near_" if fits else "masked_"

    def _binary(self, e: ir.Binary) -> CText:
        match e.op:
            case ir.BinaryOp.MIN | ir.BinaryOp.MAX:
                return self._typed_call(f"{self._mask_prefix(e)}{e.op.value}", e)
            case ir.BinaryOp.MUL if self._parted and is_long_product(e):
                return self._long_product(LONG_PRODUCT, e, DType.INT64)
            case ir.BinaryOp.TRUNCDIV if isinstance(e.b, ir.IntImm) and self._is_masked(e):
                count = ir.IntImm(e.b.value.bit_length() - 1, e.b.dtype)
                return self._typed_call("masked_truncdiv", ir.Binary(e.op, e.a, count))
            case ir.BinaryOp.FLOORDIV:
                return self._floor(e, "/", "floor_div")
            case ir.BinaryOp.FLOORMOD:
                return self._floor(e, "%", "floor_mod")
            case ir.BinaryOp.SHIFT_LEFT:
                return self._shift_left(e)
            case ir.BinaryOp.SHIFT_RIGHT if e.a.dtype.is_signed:
                return self._typed_call("shift_right", e)
            case ir.BinaryOp.SHIFT_RIGHT:
                return self._unsigned_shift(">>", e)
            case ir.BinaryOp.AND | ir.BinaryOp.OR:
                return self._logical(e)
            case _ if e.op.is_comparison:
                return self._comparison(e)
            case _ if e.op in _BITWISE:
                return self._bitwise(e)
            case _:
                return self._arithmetic(e)

    def _long_product(self, name: str, e: ir.Binary, dtype: DType) -> CText:
        factors = [self.value(factor) for factor in map(long_factor, (e.a, e.b)) if factor]
        return CText(f"{self._helper(name)}({', '.join(factors)})", c_type=dtype)

    def _upper_word(self, product: ir.Binary, added: int) -> CText:
        """Return the rounded upper word of a product, and what is added to it."""
        high = self._long_product(UPPER_WORD, product, DType.INT32)
        if added == 0:
            return high
        number = c_types.integer_literal(abs(added), DType.INT32)
        text = f"{high.text} {'-' if added < 0 else '+'} {number}"
        return CText(text, Precedence.ADDITIVE, DType.INT32)

    def _arithmetic(self, e: ir.Binary) -> CText:
        symbol, level = _ARITHMETIC[e.op]
        right = e.b
        negated = _negated_literal(right)
        if negated is not None and e.op in (ir.BinaryOp.ADD, ir.BinaryOp.SUB):
            symbol, right = ("-" if e.op is ir.BinaryOp.ADD else "+"), negated
        return self._infix(symbol, level, e.a, right)

    def _infix(self, symbol: str, level: Precedence, left: ir.Expr, right: ir.Expr) -> CText:
        a, b = self.expr(left), self.expr(right)
        if b.c_type is None:
            # One operand of the type is enough: C converts the other.
            a = _widened(a, left.dtype, left)
        text = f"{a.within(level)} {symbol} {b.within(Precedence(level + 1))}"
        return CText(text, level, _computed(left.dtype))

    def _floor(self, e: ir.Binary, symbol: str, operation: str) -> CText:
        dividend = self._raised(e) if e.op is ir.BinaryOp.FLOORMOD else e.a
        if self._bounds.of(dividend).low >= 0 and self._bounds.of(e.b).low >= 0:
            return self._infix(symbol, Precedence.MULTIPLICATIVE, dividend, e.b)
        return self._typed_call(operation, e)

    def _raised(self, e: ir.Binary) -> ir.Expr:
        """Return the dividend, with multiples of the divisor added if that makes it positive.

        C's own remainder is right then, and has no branch, so that compilers take it out of loops.
        """
        bounds = self._bounds.of(e.a)
        if not isinstance(e.b, ir.IntImm) or e.b.value <= 0 or bounds.low >= 0:
            return e.a
        more = -(bounds.low // e.b.value) * e.b.value
        fits = more <= _MOST_RAISED and bounds.high <= e.a.dtype.max - more
        return build.add(e.a, ir.IntImm(more, e.a.dtype)) if fits else e.a

    def _shift_left(self, e: ir.Binary) -> CText:
        if not e.a.dtype.is_signed:
            return self._unsigned_shift("<<", e)
        if isinstance(e.b, ir.IntImm) and 0 <= e.b.value < e.a.dtype.bits - 1:
            factor = ir.IntImm(1 << e.b.value, e.a.dtype)
            return self._infix("*", Precedence.MULTIPLICATIVE, e.a, factor)
        return self._typed_call(f"{'masked_' * self._is_masked(e)}shift_left", e)

    def _unsigned_shift(self, symbol: str, e: ir.Binary) -> CText:
        # The type of a shift is that of its left operand alone.
        a = _widened(self.expr(e.a), e.a.dtype, e.a)
        count = self.expr(e.b)
        text = f"{a.within(Precedence.UNARY)} {symbol} {count.within(Precedence.UNARY)}"
        return CText(text, Precedence.SHIFT, _computed(e.a.dtype))

    def _logical(self, e: ir.Binary) -> CText:
        symbol, level = ("&&", Precedence.AND) if e.op is ir.BinaryOp.AND else ("||", Precedence.OR)
        # Compilers warn about `a && b || c`, and readers hesitate.
        operands = [
            printed.text
            if printed.precedence == level or printed.precedence > Precedence.AND
            else f"({printed.text})"
            for printed in (self.expr(e.a), self.expr(e.b))
        ]
        return CText(f" {symbol} ".join(operands), level)

    def _comparison(self, e: ir.Binary) -> CText:
        a, b = self.expr(e.a), self.expr(e.b)
        least = Precedence.SHIFT  # `a < b == c` warns
        text = f"{a.within(least)} {e.op.value} {b.within(least)}"
        return CText(text, _COMPARISONS[e.op])

    def _bitwise(self, e: ir.Binary) -> CText:
        byte = _byte_without_sign(e)
        if byte is not None:
            return _cast(_cast(self.expr(byte), DType.UINT8), e.dtype)
        symbol, level = _BITWISE[e.op]
        a, b = self.expr(e.a), self.expr(e.b)
        left = a.text if a.precedence == level else a.within(Precedence.UNARY)
        text = f"{left} {symbol} {b.within(Precedence.UNARY)}"
        c_type = e.dtype if {a.c_type, b.c_type} - {None} else None
        return CText(text, level, None if c_types.is_promoted(e.dtype) else c_type)


def _byte_without_sign(e: ir.Binary) -> ir.Expr | None:
    """Return the INT8 of which an expression is the bits, as a positive number.

    Compilers load such a byte without its sign, which they would clear behind a load with it.
    """
    is_byte = e.op is ir.BinaryOp.BIT_AND and e.b == ir.IntImm(DType.UINT8.max, e.b.dtype)
    if is_byte and isinstance(e.a, ir.Cast) and e.a.value.dtype is DType.INT8:
        return e.a.value
    return None


def _computed(dtype: DType) -> DType | None:
    """Return the C type of an operation on operands of `dtype`."""
    return None if c_types.is_promoted(dtype) else dtype


def _cast(value: CText, dtype: DType) -> CText:
    text = f"({c_types.C_TYPES[dtype]}){value.within(Precedence.UNARY)}"
    return CText(text, Precedence.UNARY, dtype)


def _widened(value: CText, dtype: DType, e: ir.Expr | None = None) -> CText:
    """Return `value` with the C type in which the operation must be done."""
    if c_types.is_promoted(dtype) or value.c_type is dtype:
        return value
    if isinstance(e, ir.IntImm) and e.value >= 0:
        return CText(c_types.wide_literal(e.value, dtype), c_type=dtype)
    return _cast(value, dtype)


def _negated_literal(e: ir.Expr) -> ir.Expr | None:
    """Return the positive literal of a negative one; None for everything else."""
    match e:
        case ir.IntImm(value, dtype) if dtype.min < value < 0:
            return ir.IntImm(-value, dtype)
        case ir.FloatImm(value, dtype) if value < 0.0:
            return ir.FloatImm(-value, dtype)
        case _:
            return None
