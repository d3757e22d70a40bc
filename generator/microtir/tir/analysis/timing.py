"""Find out whether the number of instructions of a function depends on data, and why.

Control flow is read off TIR.  What a compiler makes of a choice is not known here: it is taken for
granted that it branches where the CPU cannot choose otherwise, and that it does not where a CPU can
and both values are at hand.  The emulator checks that (`profiling.extremes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from microtir.config import Target
from microtir.instruction_sets import instruction_set
from microtir.instruction_sets.features import Feature
from microtir.support.spelled import Spelled
from microtir.tir import float_functions, ir
from microtir.tir.analysis.bounds import Bounds
from microtir.tir.analysis.long_products import is_long_product
from microtir.tir.analysis.masks import is_at_hand, is_maskable, is_power, takes_masks
from microtir.tir.ir import BinaryOp, Intrinsic
from microtir.tir.visitor import Node, children, walk


class Time(Spelled):
    """Dependence of a number of instructions; each promises less than the one before it."""

    CONSTANT = "constant"
    COMPILER = "depends on the compiler"  # a choice that may be a branch
    BOUNDED = "bounded"  # it depends on data, and every loop has a largest number of turns
    DATA = "depends on data"


_ORDER = tuple(Time)


def worst(times: Iterable[Time]) -> Time:
    """Return the time of a whole: that of the part that holds least."""
    return max(times, key=_ORDER.index, default=Time.CONSTANT)


@dataclass(frozen=True, slots=True)
class Cause:
    """Something in a function because of which its time may differ, in words."""

    time: Time
    what: str


Callees = Callable[[str], ir.PrimFunc]


def causes_of(
    function: ir.PrimFunc, target: Target, callees: Callees | None, *, constant_time: bool = False
) -> tuple[Cause, ...]:
    """Return why a function may take another number of instructions for other data; none if not.

    Args:
        function: which is analysed with what it calls.
        target: whose CPU it is compiled for.
        callees: gives functions of the module by their names; without it those that are called
            are left out, as of a main whose layers are looked at one by one.
        constant_time: whether choices are printed as masks where the CPU takes them.
    """
    masks = constant_time and takes_masks(target)
    return tuple(dict.fromkeys(_Timing(target, callees, masks).function(function, ())))


_BRANCHING = frozenset({
    Intrinsic.SQRT, Intrinsic.FLOOR, Intrinsic.CEIL, Intrinsic.ROUND, Intrinsic.FMOD,
    Intrinsic.ROUND_HALF_TO_EVEN, Intrinsic.FLOOR_DIVIDE,
    *(of for of, _ in float_functions.OWN), *float_functions.OWN.values(),
})  # fmt: skip
"""Functions of the C library, whose time is its own, and forms that return early."""

_CHOOSING = frozenset({
    Intrinsic.SATURATING_ROUNDING_DOUBLING_HIGH_MUL, Intrinsic.ROUNDING_DIVIDE_BY_POT,
    Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER, Intrinsic.SATURATING_SHIFT_LEFT,
    Intrinsic.POSITIVE_PART,
})  # fmt: skip
"""Helpers with conditions in their C."""

_MULTIPLYING: Mapping[Intrinsic, int] = MappingProxyType({
    Intrinsic.SATURATING_ROUNDING_DOUBLING_HIGH_MUL: 32,
    Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER: 32,
    Intrinsic.MULTIPLY_BY_REDUCED_MULTIPLIER: 64,
})  # fmt: skip
"""Bits of products of CPUs that helpers with products of 64 bits need, to call no library."""

_DIVISIONS = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV)
_SHIFTS = (BinaryOp.SHIFT_LEFT, BinaryOp.SHIFT_RIGHT)


class _Timing:
    """Walks functions; variables that hold data are collected on the way, each before its uses."""

    def __init__(self, target: Target, callees: Callees | None, masks: bool) -> None:
        known = instruction_set(target.family)
        self._has, self._callees, self._masks = target.has, callees, masks
        self._chooses = known.chooses(target.features)
        self._multiplies = known.multiplies(target.features)
        self._shifts = known.shifts(target.features)
        self._data, self._bounds = set[ir.Var](), Bounds()

    def function(
        self, function: ir.PrimFunc, args: Iterable[ir.BufferView | Node]
    ) -> Iterator[Cause]:
        for parameter, arg in zip(function.params, args, strict=False):
            if isinstance(parameter, ir.Var) and self._is_data(arg):
                self._data.add(parameter)
        yield from self._node(function.body)

    def _is_data(self, node: ir.BufferView | Node) -> bool:
        """Return whether a value is, or follows from, what a run is given."""
        return not isinstance(node, ir.BufferView | ir.BufferArgument) and any(
            n in self._data
            if isinstance(n, ir.Var)
            else isinstance(n, ir.Load) and n.buffer.scope is not ir.Scope.CONSTANT
            for n in walk(node)
        )

    def _node(self, node: Node) -> Iterator[Cause]:
        match node:
            case ir.Let(var, value) if self._is_data(value):
                self._data.add(var)
                if not value.dtype.is_float:
                    self._bounds.ranges[var] = self._bounds.of(value)
            case ir.For(var, start, stop) if self._is_data(start) or self._is_data(stop):
                self._data.add(var)
                yield self._loop(start, stop)
            case ir.If(condition) if self._is_data(condition):
                yield Cause(Time.BOUNDED, "a condition on data")
            case ir.Invoke(name, args) if self._callees is not None:
                yield from self.function(self._callees(name), args)
            case ir.KernelCall(meaning, args, _, template):
                inner = self.function(meaning, args)
                # Assembly saturates and chooses by instructions.
                yield from (c for c in inner if template is None or c.time is not Time.COMPILER)
            case ir.ExternCall(function):
                yield Cause(Time.DATA, f"the function '{function.name}' outside of the program")
            case ir.Select() | ir.Binary() | ir.Call() | ir.Cast() if self._is_data(node):
                yield from self._operation(node)
            case _:
                pass
        for child in children(node):
            yield from self._node(child)

    def _operation(self, e: ir.Select | ir.Binary | ir.Call | ir.Cast) -> Iterator[Cause]:
        if _floats(e) and not self._has(_fpu(e)):
            yield Cause(Time.BOUNDED, "floats by functions of a library")
        match e:
            case _ if self._masks and is_maskable(e):
                if isinstance(e, ir.Call) and any(map(self._is_data, e.args[2:])):
                    yield Cause(Time.COMPILER, "a shift of a multiplier by data")
            case ir.Select(condition, then, otherwise) if self._is_data(condition):
                yield from self._choice("a choice by data", all(map(is_at_hand, (then, otherwise))))
            case ir.Binary(BinaryOp.MIN | BinaryOp.MAX):
                if _floats(e) or not self._has(Feature.ZBB) or e.dtype.bytes == 8:
                    yield from self._choice("a clamp, minimum or maximum")
            case ir.Binary(BinaryOp.AND | BinaryOp.OR, a, b) if self._is_data(a):
                yield from self._choice("a condition of several parts", is_at_hand(b))
            case ir.Binary(op, a, b) if op in _DIVISIONS:
                yield from self._division(op, a, b)
            case ir.Binary(op, a, b) if (
                op in _SHIFTS and a.dtype.bits > self._shifts and self._is_data(b)
            ):
                yield from self._choice("a shift by data")
            case ir.Binary(BinaryOp.SHIFT_LEFT, a, b) if a.dtype.is_signed and self._is_data(b):
                yield from self._choice("a shift to the left by data")  # all but the sign, or it
            case ir.Binary(BinaryOp.MUL, _, b) if e.dtype.bits > self._multiplies:
                is_parted = self._multiplies > 0 and is_long_product(e)
                if not (_floats(e) or is_power(b) or is_parted):
                    yield Cause(Time.BOUNDED, "a product by a library")
            case ir.Call(intrinsic, args):
                yield from self._call(intrinsic, args)
            case _:
                pass

    def _loop(self, start: ir.Expr, stop: ir.Expr) -> Cause:
        turns = self._bounds.of(stop).high - self._bounds.of(start).low
        if turns >= ir.DType.INT32.max:
            return Cause(Time.DATA, "a loop whose number of iterations depends on data")
        return Cause(
            Time.BOUNDED, f"a loop whose number of iterations depends on data, {turns} at most"
        )

    def _choice(self, what: str, at_hand: bool = True) -> Iterator[Cause]:
        if not (self._chooses and at_hand):
            yield Cause(Time.COMPILER, what)

    def _division(self, op: BinaryOp, a: ir.Expr, b: ir.Expr) -> Iterator[Cause]:
        if is_power(b):
            if op is BinaryOp.TRUNCDIV:
                yield from self._choice("a division that rounds to zero")
        elif a.dtype.bytes == 8 or not self._has(Feature.DIVIDE):
            yield Cause(Time.BOUNDED, "an integer division by a library")
        elif op is not BinaryOp.TRUNCDIV:
            yield from self._choice("a division that rounds down")

    def _call(self, intrinsic: Intrinsic, args: tuple[ir.Expr, ...]) -> Iterator[Cause]:
        name = intrinsic.value
        if intrinsic in _BRANCHING:
            yield Cause(Time.BOUNDED, f"the function '{name}'")
        elif intrinsic is Intrinsic.COUNT_LEADING_ZEROS:
            if not self._chooses:
                yield Cause(Time.BOUNDED, "leading zeros, counted in a loop")
        elif self._multiplies < _MULTIPLYING.get(intrinsic, 0):
            yield Cause(Time.BOUNDED, "a product by a library")
        elif intrinsic in _CHOOSING:
            yield from self._choice(f"the conditions in '{name}'")


def _floats(e: ir.Expr) -> bool:
    """Return whether an operation works on floats or gives one; a move of one does neither."""
    if isinstance(e, ir.Select):
        return False
    return any(dtype.is_float for dtype in _dtypes(e))


def _fpu(e: ir.Expr) -> Feature:
    return Feature.FPU_DOUBLE if ir.DType.FLOAT64 in _dtypes(e) else Feature.FPU


def _dtypes(e: ir.Expr) -> tuple[ir.DType, ...]:
    """Return the types of a value and of its operands, which are values, too."""
    return tuple(n.dtype for n in (e, *children(e)))  # type: ignore[union-attr]
