"""The nodes of tensor expressions: a thin handle on a TIR expression, with Python's operators.

Vocabulary
    handle      an `Expr`: a TIR expression plus what must be computed before it
    prelude     a value computed before the expression that reads it: a reduction, a scan or a bind
    needs       the preludes and tensors that an expression depends on

A reduction is an expression to the reader of a kernel, but a loop to the machine.  So a handle
holds a placeholder `Var` where the reduction's value is read, and lists the reduction in its
needs; `te.emit` turns placeholders into accumulators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from microtir.dtype import DType
from microtir.errors import TirError
from microtir.tir import build, ir
from microtir.tir.printer import expr_text
from microtir.tir.visitor import Replacement, substitute

Combine: TypeAlias = Callable[[ir.Expr, ir.Expr], ir.Expr]
"""Function that combines the value so far with the next one."""


@dataclass(frozen=True, slots=True, eq=False)
class Needs:
    """Definitions of the placeholders and of the buffers that an expression may read.

    A superset: folding may have dropped the part of the expression that read one of them.
    """

    preludes: tuple[Prelude, ...] = ()
    tensors: tuple[Tensor, ...] = ()


NOTHING = Needs()


def merged(*all_needs: Needs) -> Needs:
    """Join the needs of an expression's operands."""
    filled = [needs for needs in all_needs if needs.preludes or needs.tensors]
    if len(filled) <= 1:
        return filled[0] if filled else NOTHING
    return Needs(
        tuple(dict.fromkeys(prelude for needs in filled for prelude in needs.preludes)),
        tuple(dict.fromkeys(tensor for needs in filled for tensor in needs.tensors)),
    )


BuildBinary: TypeAlias = Callable[[ir.Expr, ir.Expr], ir.Expr]
Method: TypeAlias = "Callable[[Expr, ExprLike], Expr]"


def _infix(
    symbol: str, make: BuildBinary, on_bool: BuildBinary | None = None
) -> tuple[Method, Method]:
    """Return the methods of an operator, with a handle on the left and on the right.

    One with `on_bool` is logical on BOOL, lazy on the right, and bitwise on integers.
    """

    def left(self: Expr, other: ExprLike) -> Expr:
        return binary(symbol, make, self, other, on_bool)

    def right(self: Expr, other: ExprLike) -> Expr:
        return binary(symbol, make, other, self, on_bool)

    return left, right


@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """A scalar value of a kernel.

    Operators: ``+ - * / // % << >> & | ^ ~ < <= > >= == !=`` and unary minus.  `/` is for
    floating point, `//` and `%` round to minus infinity, `& | ~` are logical on BOOL.  A Python
    number takes the type of the other operand; two handles must have the same type (TirError).
    """

    node: ir.Expr
    needs: Needs = NOTHING

    @property
    def dtype(self) -> DType:
        return self.node.dtype

    __add__, __radd__ = _infix("+", build.add)
    __sub__, __rsub__ = _infix("-", build.sub)
    __mul__, __rmul__ = _infix("*", build.mul)
    __truediv__, __rtruediv__ = _infix("/", build.div)
    __floordiv__, __rfloordiv__ = _infix("//", build.floordiv)
    __mod__, __rmod__ = _infix("%", build.floormod)
    __lshift__, __rlshift__ = _infix("<<", build.shift_left)
    __rshift__, __rrshift__ = _infix(">>", build.shift_right)
    __and__, __rand__ = _infix("&", build.bit_and, on_bool=build.logical_and)
    __or__, __ror__ = _infix("|", build.bit_or, on_bool=build.logical_or)
    __xor__, __rxor__ = _infix("^", build.bit_xor)
    __lt__ = _infix("<", build.lt)[0]
    __le__ = _infix("<=", build.le)[0]
    __gt__ = _infix(">", build.gt)[0]
    __ge__ = _infix(">=", build.ge)[0]
    # They give expressions, as those of numpy arrays give arrays.
    __eq__ = _infix("==", build.eq)[0]  # type: ignore[assignment]
    __ne__ = _infix("!=", build.ne)[0]  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __neg__(self) -> Expr:
        return Expr(build.neg(self.node), self.needs)

    def __invert__(self) -> Expr:
        if self.dtype is not DType.BOOL:
            raise TirError(
                f"'~' needs a bool, but {describe(self)} is {self.dtype.value}", where="te"
            )
        return Expr(build.logical_not(self.node), self.needs)

    def __bool__(self) -> bool:
        raise TirError(
            f"{describe(self)} is an expression, which Python cannot use as a condition",
            where="te",
            fix="use te.select(condition, then, otherwise), and & | ~ instead of and, or, not",
        )


ExprLike: TypeAlias = Expr | ir.Expr | int | float | np.generic
"""Operand of an expression: a handle, a node of TIR, or a number."""


@dataclass(frozen=True, slots=True, eq=False)
class ScalarVar(Expr):
    """A runtime integer parameter, made by `te.var`."""

    @property
    def var(self) -> ir.Var:
        assert isinstance(self.node, ir.Var)
        return self.node

    @property
    def name(self) -> str:
        return self.var.name

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ReduceAxis(Expr):
    """The index of a reduction, over [start, stop); made by `te.reduce_axis`."""

    start: Expr
    stop: Expr

    @property
    def var(self) -> ir.Var:
        assert isinstance(self.node, ir.Var)
        return self.node

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True, eq=False)
class Bind:
    """A named value; `var` stands for it in the expressions that read it."""

    var: ir.Var
    value: Expr

    @property
    def axes(self) -> tuple[ReduceAxis, ...]:
        return ()

    @property
    def operands(self) -> tuple[Expr, ...]:
        return (self.value,)


@dataclass(frozen=True, slots=True, eq=False)
class Reduce:
    """A reduction of `value` over `axes`, the first one outermost, beginning with `init`.

    Only the iterations in which `where` holds take part; None: all of them.
    """

    var: ir.Var
    combine: Combine
    axes: tuple[ReduceAxis, ...]
    value: Expr
    init: Expr
    where: Expr | None = None

    @property
    def operands(self) -> tuple[Expr, ...]:
        """Return every expression that the reduction evaluates, in evaluation order."""
        bounds = tuple(bound for axis in self.axes for bound in (axis.start, axis.stop))
        return (self.init, *bounds, self.term)

    @property
    def term(self) -> Expr:
        """Return the value as it is evaluated: behind the condition, if there is one."""
        if self.where is None:
            return self.value
        guarded = ir.Select(self.where.node, self.value.node, self.value.node)
        return Expr(guarded, merged(self.where.needs, self.value.needs))


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """A value that goes on from one step of a computation's loop `along` to the next.

    It begins with `init`, and every step combines it with `value` before it is read.
    """

    var: ir.Var
    combine: Combine
    along: ir.Var
    value: Expr
    init: Expr

    @property
    def axes(self) -> tuple[ReduceAxis, ...]:
        return ()

    @property
    def operands(self) -> tuple[Expr, ...]:
        return (self.init, self.value)


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A value of a reduction, which lies in the place of the result until that is computed.

    The axis of the reduction goes over the same places as `along`, the computation's last one.
    """

    var: ir.Var
    reduce: Reduce
    along: ir.Var
    result: Expr

    @property
    def axes(self) -> tuple[ReduceAxis, ...]:
        return ()

    @property
    def operands(self) -> tuple[Expr, ...]:
        return (self.result, Expr(self.along))


Prelude: TypeAlias = Bind | Reduce | Scan | Term


def describe(value: Expr) -> str:
    """Describe an expression for a message."""
    return f"'{expr_text(value.node)}'"


def as_expr(value: ExprLike, like: DType | None = None) -> Expr:
    """Return a handle on `value`; a number takes type `like` (else INT32, FLOAT32 or BOOL).

    Raises:
        TirError: the number is no value of `like`, or it is no number at all.
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, ir.Expr):
        return Expr(value)
    if not isinstance(value, int | float | np.generic):
        raise TirError(
            f"a value of type {type(value).__name__} cannot be part of an expression",
            where="te",
            legal="numbers and expressions",
            fix="if it is a tensor, add indices: tensor[i, j]",
        )
    number: int | float = value.item() if isinstance(value, np.generic) else value
    dtype = like or _default_type(number)
    if isinstance(number, float) and not dtype.is_float:
        raise TirError(
            f"the number {number!r} cannot be combined with an operand of type {dtype.value}",
            where="te",
            fix="use a whole number, or te.cast the other operand to a floating point type",
        )
    return Expr(build.literal(number, dtype))


def _default_type(number: float) -> DType:
    if isinstance(number, bool):
        return DType.BOOL
    return DType.INT32 if isinstance(number, int) else DType.FLOAT32


def same_type(symbol: str, a: ExprLike, b: ExprLike) -> tuple[Expr, Expr]:
    """Return both operands as handles of one type.

    Raises:
        TirError: their types differ; the message names both.
    """
    left = as_expr(a, b.dtype if isinstance(b, Expr | ir.Expr) else None)
    right = as_expr(b, left.dtype)
    if left.dtype is not right.dtype:
        raise TirError(
            f"the operands of '{symbol}' have different types: {describe(left)} is "
            f"{left.dtype.value}, {describe(right)} is {right.dtype.value}",
            where="te",
            fix="convert one of them with te.cast(dtype, value)",
        )
    return left, right


def binary(
    symbol: str, make: BuildBinary, a: ExprLike, b: ExprLike, on_bool: BuildBinary | None = None
) -> Expr:
    """Apply `make` to two operands of one type, or `on_bool`, if it is there, to two of BOOL."""
    left, right = same_type(symbol, a, b)
    if on_bool is not None and left.dtype is DType.BOOL:
        make = on_bool
    return Expr(make(left.node, right.node), merged(left.needs, right.needs))


# --- tensors: expressions read them, and they are computed by expressions ----------------------


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One loop of a computation over [start, stop)."""

    var: ir.Var
    start: Expr
    stop: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Computation:
    """The computation of a tensor: one loop nest over `axes`, the first one outermost."""

    axes: tuple[Axis, ...]
    value: Expr
    indices: tuple[ir.Expr, ...]  # where the element of `axes` is stored


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """An operand: a placeholder, a constant, or the result of `compute`.

    `shape` counts the elements of the tensor, `buffer.shape` those of its storage; they differ
    where `compute` was given another place for each element.
    """

    buffer: ir.Buffer
    shape: tuple[ir.Dim, ...]
    computation: Computation | None = None

    @property
    def name(self) -> str:
        return self.buffer.name

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    def __getitem__(self, indices: ExprLike | tuple[ExprLike, ...]) -> Expr:
        """Return the element at `indices`, one INT32 per axis of the tensor.

        Raises:
            TirError: wrong number or type of indices.
        """
        items = indices if isinstance(indices, tuple) else (indices,)
        if len(items) != len(self.shape):
            raise TirError(
                f"got {len(items)} indices for a tensor of rank {len(self.shape)}",
                where=f"tensor '{self.name}'",
            )
        handles = as_indices(items, f"tensor '{self.name}'")
        nodes = tuple(handle.node for handle in handles)
        if self.computation is not None:
            # Written through `store`: read from where the element was put.
            axes = self.computation.axes
            places: dict[ir.Param, Replacement] = {
                axis.var: node for axis, node in zip(axes, nodes, strict=True)
            }
            nodes = tuple(substitute(place, places) for place in self.computation.indices)
        needs = merged(*(handle.needs for handle in handles), Needs(tensors=(self,)))
        return Expr(ir.Load(self.buffer, nodes), needs)


def as_indices(items: Sequence[ExprLike], where: str) -> tuple[Expr, ...]:
    """Return indices as expressions; TirError if one is no INT32."""
    handles = tuple(as_expr(item, DType.INT32) for item in items)
    for handle in handles:
        if handle.dtype is not DType.INT32:
            raise TirError(
                f"the index {describe(handle)} has the type {handle.dtype.value}",
                where=where,
                legal="INT32",
                fix="convert it with te.cast(DType.INT32, value)",
            )
    return handles
