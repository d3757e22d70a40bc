"""Count the work of a loop nest by kinds: what a compiler is sure to leave of it.

What does not change in a loop is counted where it is computed, outside of it, and what is computed
twice with the same operands once.  Arithmetic of indices is left to the addressing of loads and
stores; a pointer is set up where a loop is entered.  How many instructions a CPU takes for each
kind is not known here: see `kernels.common.counted`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.tir import ir
from microtir.tir.ir import BinaryOp, Intrinsic
from microtir.tir.visitor import Node, children, walk, walk_statements

Work: TypeAlias = Mapping[str, float]
"""Times that each kind of work is done: an operation and what it works on, such as `load_8`."""

_Values: TypeAlias = "npt.NDArray[Any] | int | None"
"""The values of an expression over the loops around it, one axis for each; None if unknown."""

COPIED_IN_PLACE = 32  # bytes
_SHORT_ARM = 2  # operations in an arm of a select that are done under a condition
_LARGEST = 1 << 16  # values of an expression, beyond which they count as unknown


def work_of(function: ir.PrimFunc) -> Work:
    """Return the work of one call: of one for the last row, if it is called for rows."""
    counter = WorkCounter()
    if function.row_range is not None:
        last = function.row_range.stop.high or 1
        counter.values.update({function.row_range.start: last - 1, function.row_range.stop: last})
    counter.statement(function.body)
    return MappingProxyType(dict(counter.counts))


_EVALUATED: Mapping[BinaryOp, Callable[[Any, Any], Any]] = MappingProxyType({
    BinaryOp.ADD: np.add, BinaryOp.SUB: np.subtract, BinaryOp.MUL: np.multiply,
    BinaryOp.FLOORDIV: np.floor_divide, BinaryOp.FLOORMOD: np.mod,
    BinaryOp.MIN: np.minimum, BinaryOp.MAX: np.maximum,
    BinaryOp.EQ: np.equal, BinaryOp.NE: np.not_equal, BinaryOp.LT: np.less,
    BinaryOp.LE: np.less_equal, BinaryOp.GT: np.greater, BinaryOp.GE: np.greater_equal,
    BinaryOp.AND: np.logical_and, BinaryOp.OR: np.logical_or,
})  # fmt: skip

_NAMES: Mapping[BinaryOp, str] = MappingProxyType({
    BinaryOp.ADD: "add", BinaryOp.SUB: "add", BinaryOp.MUL: "mul", BinaryOp.DIV: "div",
    BinaryOp.FLOORDIV: "div", BinaryOp.FLOORMOD: "div", BinaryOp.TRUNCDIV: "div",
    BinaryOp.MIN: "minmax", BinaryOp.MAX: "minmax",
})  # fmt: skip
_TAKE_SHIFTED = (
    BinaryOp.ADD, BinaryOp.SUB, BinaryOp.BIT_AND, BinaryOp.BIT_OR, BinaryOp.BIT_XOR,
)  # fmt: skip
_RESCALES = Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER, Intrinsic.ROUNDING_DIVIDE_BY_POT
_SHIFTS = (BinaryOp.SHIFT_LEFT, BinaryOp.SHIFT_RIGHT)
_DIVISIONS = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV)


@dataclass(slots=True)
class _Loop:
    """A loop while its body is counted: its turns in all, and what is stored and known in it.

    What is known stands with the buffers that it was computed from.
    """

    turns: float
    stored: frozenset[ir.Buffer] = frozenset()
    seen: dict[object, frozenset[ir.Buffer]] = field(default_factory=dict)


class WorkCounter:
    """Counts the work of statements, one after the other."""

    def __init__(self) -> None:
        self.counts: defaultdict[str, float] = defaultdict(float)
        self.loops = [_Loop(1.0)]
        self.depths: dict[ir.Var, int] = {}
        self.values: dict[ir.Var, _Values] = {}
        self.share = 1.0  # of the turns that come to where the counter is

    def add(self, kind: str, depth: int, times: float = 1.0) -> None:
        self.counts[kind] += self.loops[depth].turns * self.share * times

    # --- statements ---------------------------------------------------------------------------

    def statement(self, s: ir.Stmt) -> None:
        match s:
            case ir.Seq(statements):
                for each in statements:
                    self.statement(each)
            case ir.Allocate(_, body):
                self.statement(body)
            case ir.Let(var, value, body):
                self.expr(value)
                self.depths[var] = self.depth(value)
                self.values[var] = self.value(value)
                self.statement(body)
            case ir.Store(buffer, indices, value):
                self.expr(value)
                if not _is_register(buffer):
                    self.access("store", buffer, indices, len(self.loops) - 1)
                seen = self.loops[-1].seen
                for stale in [e for e, sources in seen.items() if buffer in sources]:
                    del seen[stale]
            case ir.If(condition, then, otherwise):
                self.expr(condition)
                self.add("branch", len(self.loops) - 1)
                with self.sharing(condition) as share:
                    self.statement(then)
                if otherwise is not None:
                    with self.sharing(condition, 1 - share):
                        self.statement(otherwise)
            case ir.For():
                self.loop(s)
            case _:
                self.add("call", len(self.loops) - 1)

    def loop(self, s: ir.For) -> None:
        start, stop = self.value(s.start), self.value(s.stop)
        if start is None or stop is None:
            start, stop = 0, 1
        trips = np.maximum(np.subtract(stop, start), 0)
        most, depth = int(trips.max()), len(self.loops)
        axis = np.arange(most).reshape(-1, *(1,) * depth)
        is_small = most * np.size(start) <= _LARGEST
        self.values[s.var] = start if most == 1 else start + axis if is_small else None
        if most == 1 and trips.min() == 1:
            self.depths[s.var] = max(self.depth(s.start), 0)
            self.statement(s.body)
            return
        is_fixed = int(trips.min()) == most
        is_cut = not is_fixed and int(np.min(start)) == int(np.max(start))
        kind = "entry" if is_fixed else "entry_to_some" if is_cut else "entry_of_some"
        self.add(kind, depth - 1)
        row = _row_of(s)
        if row is not None and is_fixed:
            self.row(most * row, depth - 1)
            return
        self.depths[s.var] = depth
        self.enter(s, float(trips.mean()))
        self.add("turn", depth)
        self.statement(s.body)
        self.loops.pop()

    def enter(self, s: ir.For, trips: float) -> None:
        """Begin a loop: what follows is done so many times for each turn of that around it."""
        stored = frozenset(n.buffer for n in walk_statements(s.body) if isinstance(n, ir.Store))
        self.loops.append(_Loop(self.loops[-1].turns * trips, stored))

    def row(self, size: int, depth: int) -> None:
        """Count bytes that compilers copy word by word, or by a function if they are many."""
        self.add("row", depth)
        if size > COPIED_IN_PLACE:
            self.add("row_call", depth)
            self.add("row_bytes", depth, size)
        elif size % 4:
            self.add("row_parts", depth, size // 4 + (size % 4).bit_count())
        else:
            self.add("row_words", depth, size // 4)

    @contextmanager
    def sharing(self, condition: ir.Expr, share: float | None = None) -> Iterator[float]:
        """Count what is done only where a condition holds; a share that is unknown is a half."""
        if share is None:
            held = self.value(condition)
            share = 0.5 if held is None else float(np.mean(held))
        whole, self.share = self.share, self.share * share
        yield share
        self.share = whole

    def value(self, e: ir.Expr) -> _Values:
        match e:
            case ir.IntImm(value):
                return value
            case ir.Var():
                return self.values.get(e)
            case ir.Cast(_, inner):
                return self.value(inner)
            case ir.Unary(op, inner):
                of = self.value(inner)
                if of is None:
                    return None
                negated: _Values = np.logical_not(of) if op is ir.UnaryOp.NOT else np.negative(of)
                return negated
            case ir.Binary(op, a, b) if op in _EVALUATED:
                first, second = self.value(a), self.value(b)
                if first is None or second is None:
                    return None
                if np.broadcast(first, second).size > _LARGEST:
                    return None
                result: _Values = _EVALUATED[op](first, second)
                return result
            case _:
                return None

    # --- expressions --------------------------------------------------------------------------

    def depth(self, e: ir.Expr) -> int:
        """Return the number of loops around the place where a value is computed."""
        deepest = 0
        for n in walk(e):
            if isinstance(n, ir.Var):
                deepest = max(deepest, self.depths.get(n, 0))
            elif isinstance(n, ir.Load):
                deepest = max(deepest, self.changes(n.buffer))
        return deepest

    def changes(self, buffer: ir.Buffer) -> int:
        """Return the innermost loop in which the elements of a buffer may change."""
        if buffer.scope is ir.Scope.CONSTANT:
            return 0
        for depth in range(len(self.loops) - 1, 0, -1):
            stored = self.loops[depth].stored
            if buffer in stored or (
                buffer.scope is not ir.Scope.LOCAL
                and any(b.scope is not ir.Scope.LOCAL for b in stored)
            ):
                return depth
        return 0

    def access(
        self, kind: str, buffer: ir.Buffer, indices: tuple[ir.Expr, ...], depth: int
    ) -> None:
        """Count a load or a store, and the pointer that a loop is given for it."""
        self.add(f"{kind}_{_width(buffer.dtype)}", depth)
        innermost = max(map(self.depth, indices), default=0)
        self.computed(indices)
        if innermost and self.is_new(
            ("pointer", buffer, *map(_without_constant, indices)), innermost
        ):
            self.add("pointer", innermost - 1)

    def computed(self, indices: tuple[ir.Expr, ...]) -> None:
        """Count indices that are more than sums of loops."""
        for index in indices:
            if any(_is_computed(n) for n in walk(index)):
                self.expr(index)
                self.add("address", self.depth(index))

    def is_new(self, what: object, depth: int) -> bool:
        seen = self.loops[depth].seen
        if what in seen:
            return False
        seen[what] = _sources(what)
        return True

    def expr(self, e: ir.Expr) -> None:
        """Count an expression where it is not known already."""
        if isinstance(e, ir.Var | ir.IntImm | ir.FloatImm):
            return
        if isinstance(e, ir.Load) and _is_register(e.buffer):
            return
        depth = self.depth(e)
        if not self.is_new(e, depth):
            return
        match e:
            case ir.Load(buffer, indices):
                self.access("load", buffer, indices, depth)
            case ir.Cast(dtype, value):
                self.expr(value)
                if dtype.is_float != value.dtype.is_float:
                    self.converted(e, depth)
                elif dtype.bytes == 8 > value.dtype.bytes:
                    self.add("widen", depth)
            case ir.Unary(_, value):
                self.expr(value)
                self.add(f"add_{_kind(value.dtype)}", depth)
            case ir.Select(condition, then, otherwise):
                self.expr(condition)
                is_branch = _is_long(then) or _is_long(otherwise)
                chosen = "choose" if is_branch else "select"
                self.add(f"{chosen}_{_kind(then.dtype)}", depth)
                with self.sharing(condition) as share:
                    self.expr(then)
                with self.sharing(condition, 1 - share):
                    self.expr(otherwise)
            case ir.Call(intrinsic, args):
                for arg in args:
                    self.expr(arg)
                if intrinsic is not Intrinsic.NO_FP_CONTRACT:
                    self.add(self.called(e), depth)
            case ir.Binary():
                self.binary(e, depth)

    def operand(self, e: ir.Expr) -> None:
        inner = _shifted(e)
        if inner is None:
            self.expr(e)
        elif self.is_new(e, depth := self.depth(e)):
            self.expr(inner)
            self.add("shift_operand", depth)

    def binary(self, e: ir.Binary, depth: int) -> None:
        kind, of = _kind(e.a.dtype), e.op
        clamp = _clamp_of(e)
        if clamp is not None:
            self.operand(clamp[1])
            self.add(clamp[0], depth)
            return
        product = _product_of(e)
        if product is not None:
            other = e.a if product is e.b else e.b
            for part in (other, product.a, product.b):
                self.expr(part)
            self.add(f"mla_{kind}", depth)
            return
        for part in (e.a, e.b):
            (self.operand if of in _TAKE_SHIFTED else self.expr)(part)
        constant = e.b.value if isinstance(e.b, ir.IntImm) else None
        is_power = constant is not None and _is_power(constant)
        if of in _SHIFTS:
            high = constant is not None and constant >= 32
            self.add(
                f"shift_{kind}" if constant is not None else f"shift_by_{kind}", depth, not high
            )
        elif is_power and (of is BinaryOp.MUL or of in _DIVISIONS):
            self.add(f"shift_{kind}", depth)
        elif of in _DIVISIONS and constant is not None:
            self.divided_by_constant(depth)
        elif of.is_comparison:
            self.add(f"compare_{kind}", depth)
        else:
            self.add(f"{_NAMES.get(of, 'bits')}_{kind}", depth)

    def called(self, e: ir.Call) -> str:
        """Return the kind of an intrinsic; what rescales is told apart by the sign of its shift."""
        name = e.intrinsic.name.lower()
        if e.intrinsic not in _RESCALES:
            return name
        shift = self.value(e.args[-1])
        if shift is None:
            return f"{name}_by"
        low, high = np.min(shift), np.max(shift)
        ends = {high < 0: name, low > 0: f"{name}_left", low == high == 0: f"{name}_0"}
        return ends.get(True, f"{name}_by")

    def converted(self, e: ir.Cast, depth: int) -> None:
        del e
        self.add("convert", depth)

    def divided_by_constant(self, depth: int) -> None:
        """Count a division by a number that is no power of two: a product in its place."""
        self.add("mul_long", depth)
        self.add("add_int", depth, 2)


def _shifted(e: ir.Expr) -> ir.Expr | None:
    """Return what is shifted by a constant number of bits, if that is all."""
    match e:
        case ir.Binary(BinaryOp.SHIFT_LEFT | BinaryOp.SHIFT_RIGHT, a, ir.IntImm()):
            return a if a.dtype.bytes <= 4 else None
        case ir.Binary(BinaryOp.MUL, a, ir.IntImm(factor)) if _is_power(factor):
            return a if a.dtype.bytes <= 4 else None
        case _:
            return None


def _kind(dtype: DType) -> str:
    return "float" if dtype.is_float else "long" if dtype.bytes == 8 else "int"


def _width(dtype: DType) -> str:
    return "float" if dtype.is_float else str(8 * dtype.bytes)


def _is_register(buffer: ir.Buffer) -> bool:
    return buffer.scope is ir.Scope.LOCAL and not buffer.shape


def _sources(e: object) -> frozenset[ir.Buffer]:
    if isinstance(e, tuple):
        return frozenset()  # a pointer
    return frozenset(n.buffer for n in walk(e) if isinstance(n, ir.Load))  # type: ignore[arg-type]


def _is_computed(e: object) -> bool:
    """Return whether an index is more than a sum of loops."""
    if isinstance(e, ir.Binary):
        return e.op in _DIVISIONS or e.op in (BinaryOp.MIN, BinaryOp.MAX)
    return isinstance(e, ir.Load | ir.Select)


def _is_long(e: ir.Expr) -> bool:
    """Return whether compilers branch around an arm: it is more than a few operations."""
    return _operations(e) > _SHORT_ARM


def _operations(e: Node) -> int:
    """Return the operations of an expression, without those of indices."""
    if isinstance(e, ir.Load):
        return 0
    return isinstance(e, ir.Binary | ir.Call) + sum(map(_operations, children(e)))


def _without_constant(e: ir.Expr) -> ir.Expr:
    match e:
        case ir.Binary(BinaryOp.ADD | BinaryOp.SUB, a, ir.IntImm()):
            return a
        case _:
            return e


def _is_power(value: int) -> bool:
    return value != 0 and abs(value) & (abs(value) - 1) == 0


def _row_of(s: ir.For) -> int | None:
    """Return the bytes of an element if a loop copies neighbours from constants, else None."""
    match s.body:
        case ir.Store(_, (*_, ir.Var() as last), ir.Load(buffer, (*outer, ir.Var() as read))):
            is_row = last is s.var is read and buffer.scope is ir.Scope.CONSTANT
            is_within = any(n is s.var for index in outer for n in walk(index))
            return buffer.dtype.bytes if is_row and not is_within else None
        case _:
            return None


def _clamp_of(e: ir.Binary) -> tuple[str, ir.Expr] | None:
    """Return the kind of a clamp to constants and what is clamped, if it is one."""
    ends = (BinaryOp.MIN, BinaryOp.MAX)
    inner = e.a
    if e.op not in ends or not isinstance(inner, ir.Binary) or inner.op not in ends:
        return None
    if inner.op is e.op or not isinstance(e.b, ir.IntImm) or not isinstance(inner.b, ir.IntImm):
        return None
    low, high = sorted((e.b.value, inner.b.value))
    is_of_bits = _is_power(high + 1) and low in (-high - 1, 0)
    return "saturate" if is_of_bits else "clamp", inner.a


def _product_of(e: ir.Binary) -> ir.Binary | None:
    """Return the product that an instruction adds to the other operand, if there is one."""
    if e.op is BinaryOp.ADD or e.op is BinaryOp.SUB:
        for part in (e.b, e.a) if e.op is BinaryOp.ADD else (e.b,):
            if isinstance(part, ir.Binary) and part.op is BinaryOp.MUL:
                is_shift = isinstance(part.b, ir.IntImm) and _is_power(part.b.value)
                if not is_shift:
                    return part
    return None
