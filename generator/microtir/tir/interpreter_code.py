"""Translates a PrimFunc to Python source that checks whatever can go wrong.

Source instead of a tree walk because a kernel runs some million steps in a test.  Each operation
becomes one assignment to a temporary, so that neither the depth of an expression nor the order
of lazy evaluation needs care.  A check is left out only where the ranges of the operands, known
from literals, types and loop bounds, exclude the error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np

from microtir.dtype import DType
from microtir.errors import InterpreterError
from microtir.tir import arithmetic, ir
from microtir.tir.analysis.interval import Interval
from microtir.tir.interpreter_memory import MemoryView, Sites
from microtir.tir.visitor import allocations, walk


@dataclass(frozen=True, slots=True)
class Compiled:
    """A translated function; `run(machine, *views and ints)`."""

    func: ir.PrimFunc
    run: Callable[..., None]
    source: str


class Value(NamedTuple):
    """A name or literal of the source, and the range of an integer."""

    code: str
    range: Interval | None = None


@dataclass(frozen=True, slots=True)
class _Place:
    """The way from the source to a buffer: a Python variable if `scalar`, else view and memory."""

    number: int
    scalar: bool
    shape: tuple[Value, ...] = ()


_ARITHMETIC = {ir.BinaryOp.ADD: "+", ir.BinaryOp.SUB: "-", ir.BinaryOp.MUL: "*"}
_BITS = {ir.BinaryOp.BIT_AND: "&", ir.BinaryOp.BIT_OR: "|", ir.BinaryOp.BIT_XOR: "^"}


def compile_function(func: ir.PrimFunc) -> Compiled:
    """Translate a function and the kernels that it calls.

    Raises:
        InterpreterError: a Var or Buffer is used outside its scope, or nesting is too deep.
    """
    coder = _Coder(func)
    source = coder.function()
    namespace: dict[str, Any] = coder.globals
    try:
        exec(compile(source, f"<tir {func.name}>", "exec"), namespace)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise InterpreterError(
            f"the statements are nested too deeply to be run: {error}",
            where=f"function '{func.name}'",
        ) from None
    return Compiled(func, namespace["run"], source)


class _Coder:
    def __init__(self, func: ir.PrimFunc) -> None:
        self.func = func
        self.sites = Sites(func)
        self.lines: list[str] = []
        self.depth = 1
        self.next = 0
        self.vars: dict[ir.Var, Value] = {}
        self.buffers: dict[ir.Buffer, _Place] = {}
        self.dtypes: dict[DType, str] = {}
        self.by_pointer = {
            n.buffer for n in walk(func) if isinstance(n, ir.BufferArgument | ir.BufferView)
        }
        self.kernels: dict[ir.PrimFunc, str] = {}
        self.globals: dict[str, Any] = {
            "S": self.sites, "A": arithmetic, "f32": _float32_rounder(),
            "new_memory": MemoryView.empty_memory, "overflow": self.sites.overflow,
        }  # fmt: skip

    # --- small helpers ---

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def number(self) -> int:
        self.next += 1
        return self.next

    def let(self, code: str, range_: Interval | None = None) -> Value:
        name = f"t{self.number()}"
        self.line(f"{name} = {code}")
        return Value(name, range_)

    def constant(self, prefix: str, value: object) -> str:
        """Return a global of the source that holds a Python object."""
        name = f"{prefix}{self.number()}"
        self.globals[name] = value
        return name

    def dtype(self, dtype: DType) -> str:
        if dtype not in self.dtypes:
            self.dtypes[dtype] = self.constant("D", dtype)
        return self.dtypes[dtype]

    def undefined(self, what: str) -> NoReturn:
        raise InterpreterError(
            f"{what} is used outside its scope", where=f"function '{self.func.name}'"
        )

    # --- functions and buffers ---

    def function(self) -> str:
        numbers = {p: self.number() for p in self.func.params}
        names = [f"{'r' if isinstance(p, ir.Buffer) else 'v'}{n}" for p, n in numbers.items()]
        for p, n in numbers.items():
            if isinstance(p, ir.Var):
                low = p.dtype.min if p.low is None else p.low
                high = p.dtype.max if p.high is None else p.high
                self.vars[p] = Value(f"v{n}", Interval(low, high) if low <= high else None)
        for p, n in numbers.items():
            if isinstance(p, ir.Buffer):
                self.open_buffer(p, n)
        self.stmt(self.func.body)
        return "\n".join([f"def run({', '.join(['m', *names])}):", *self.lines, "  pass\n"])

    def open_buffer(self, buffer: ir.Buffer, number: int) -> None:
        self.line(f"b{number} = r{number}.elements; k{number} = r{number}.mask")
        self.buffers[buffer] = _Place(number, scalar=False, shape=self.shape(buffer))

    def shape(self, buffer: ir.Buffer) -> tuple[Value, ...]:
        return tuple(
            self.expr(d) if isinstance(d, ir.Var) else Value(str(d), Interval(d, d))
            for d in buffer.shape
        )

    def place(self, buffer: ir.Buffer) -> _Place:
        if buffer not in self.buffers:
            if buffer.scope is not ir.Scope.CONSTANT or buffer.data is None:
                self.undefined(f"buffer '{buffer.name}'")
            self.open_constant(buffer)
        return self.buffers[buffer]

    def open_constant(self, buffer: ir.Buffer) -> None:
        data = np.ascontiguousarray(buffer.data, dtype=buffer.dtype.value)
        number = self.number()
        view = MemoryView.of_array(data)
        self.globals |= {f"r{number}": view, f"b{number}": view.elements, f"k{number}": view.mask}
        self.buffers[buffer] = _Place(number, scalar=False, shape=self.shape(buffer))

    # --- statements ---

    def block(self, s: ir.Stmt) -> None:
        self.depth += 1
        self.line("pass")
        self.stmt(s)
        self.depth -= 1

    def stmt(self, s: ir.Stmt) -> None:
        match s:
            case ir.Seq(statements):
                for statement in statements:
                    self.stmt(statement)
            case ir.Store():
                self.store(s)
            case ir.For():
                self.loop(s)
            case ir.If(condition, then, otherwise):
                self.line(f"if {self.expr(condition).code}:")
                self.block(then)
                if otherwise is not None:
                    self.line("else:")
                    self.block(otherwise)
            case ir.Let(var, value, body):
                bound = self.expr(value)
                name = f"v{self.number()}"
                self.line(f"{name} = {bound.code}")
                self.vars[var] = Value(name, bound.range)
                self.stmt(body)
                del self.vars[var]
            case ir.Allocate():
                buffers, inside = allocations(s)
                for buffer in buffers:
                    self.allocate(buffer)
                self.stmt(inside)
                for buffer in buffers:
                    del self.buffers[buffer]
            case ir.Invoke(function, args):
                codes = ", ".join(self.argument(a) for a in args)
                self.line(f"m.invoke({function!r}, [{codes}], {self.func.name!r})")
            case ir.KernelCall(meaning, args):
                if meaning not in self.kernels:
                    self.kernels[meaning] = self.constant("K", compile_function(meaning))
                codes = ", ".join(self.argument(a) for a in args)
                self.line(f"m.enter({self.kernels[meaning]}, [{codes}], {self.func.name!r})")
            case ir.ExternCall(extern, args):
                codes = ", ".join(self.argument(a) for a in args)
                external = self.constant("X", extern)
                self.line(f"m.leave({external}, [{codes}], {self.func.name!r})")

    def loop(self, s: ir.For) -> None:
        start, stop = self.expr(s.start), self.expr(s.stop)
        self.line(f"if {start.code} < {stop.code}: m.count({stop.code} - {start.code})")
        name = f"v{self.number()}"
        known = None
        if start.range and stop.range and start.range.low < stop.range.high:
            known = Interval(start.range.low, stop.range.high - 1)
        self.vars[s.var] = Value(name, known)
        self.line(f"for {name} in range({start.code}, {stop.code}):")
        self.block(s.body)
        del self.vars[s.var]

    def allocate(self, buffer: ir.Buffer) -> None:
        number = self.number()
        if not buffer.shape and buffer not in self.by_pointer:
            # A Python variable is the fastest accumulator; None marks it uninitialised.
            self.line(f"s{number} = None")
            self.buffers[buffer] = _Place(number, scalar=True)
            return
        count = " * ".join(v.code for v in self.shape(buffer)) or "1"
        self.line(f"r{number} = new_memory({self.dtype(buffer.dtype)}, {count})")
        self.open_buffer(buffer, number)

    def store(self, s: ir.Store) -> None:
        place = self.place(s.buffer)
        if s.buffer.scope is ir.Scope.CONSTANT:
            self.line(f"S.error({self.sites.add(s)}, 'store to a constant')")
            return
        if place.scalar:
            self.line(f"s{place.number} = {self.expr(s.value).code}")
            return
        offset = self.offset(s, place)
        value = self.expr(s.value)
        full = int.from_bytes(b"\x01" * s.buffer.dtype.bytes, "little")
        number = place.number
        self.line(f"b{number}[{offset}] = {value.code}; k{number}[{offset}] = {full}")

    def offset(self, access: ir.Load | ir.Store | ir.BufferArgument, place: _Place) -> str:
        """Emit the checks of every index and returns the code of the flat element number."""
        site = self.sites.add(access)
        if len(access.indices) != len(place.shape):
            self.line(f"S.error({site}, 'wrong number of indices')")
            return "0"
        terms = ""
        for axis, (index, extent) in enumerate(zip(access.indices, place.shape, strict=True)):
            value = self.expr(index)
            r, limit = value.range, extent.range
            if r is None or limit is None or r.low < 0 or r.high >= limit.low:
                self.line(
                    f"if not 0 <= {value.code} < {extent.code}:"
                    f" S.bounds({site}, {axis}, {value.code}, {extent.code})"
                )
            terms = f"({terms}) * {extent.code} + {value.code}" if terms else value.code
        return self.let(terms).code if len(access.indices) > 1 else terms or "0"

    def argument(self, a: ir.BufferView | ir.BufferArgument | ir.Expr) -> str:
        match a:
            case ir.BufferView(buffer, shape, dtype, offset):
                number, site = self.place(buffer).number, self.sites.add(a)
                count = int(np.prod(shape, dtype=np.int64))
                return f"S.part({site}, r{number}, {offset}, {count}, {self.dtype(dtype)})"
            case ir.BufferArgument(buffer):
                place, site = self.place(a.buffer), self.sites.add(a)
                start, size = self.offset(a, place), a.buffer.dtype.bytes
                view = f"r{place.number}"
                rest = f"{view}.count - ({start})"
                type_ = self.dtype(a.buffer.dtype)
                return f"S.part({site}, {view}, ({start}) * {size}, {rest}, {type_})"
            case _:
                return self.expr(a).code

    # --- expressions ---

    def expr(self, e: ir.Expr) -> Value:
        match e:
            case ir.Var():
                if e not in self.vars:
                    self.undefined(f"variable '{e.name}'")
                return self.vars[e]
            case ir.IntImm(value):
                code = f"({value})" if value < 0 else str(value)
                return Value(code, Interval(value, value))
            case ir.FloatImm():
                return Value(self.constant("C", e.value))
            case ir.Binary(ir.BinaryOp.AND | ir.BinaryOp.OR):
                return self.lazy(e)
            case ir.Binary():
                return self.float_binary(e) if e.a.dtype.is_float else self.int_binary(e)
            case ir.Unary(op, a):
                operand = self.expr(a)
                if op is ir.UnaryOp.NOT:
                    return self.let(f"not {operand.code}")
                if e.dtype.is_float:
                    return self.let(f"-{operand.code}")
                known = -operand.range if operand.range else None
                return self.checked(e, f"-{operand.code}", known)
            case ir.Cast():
                return self.cast(e)
            case ir.Select():
                return self.select(e)
            case ir.Load():
                return self.load(e)
            case ir.Call(intrinsic, args):
                codes = [self.expr(a).code for a in args]
                function = self.constant("I", intrinsic)
                site = self.sites.add(e)
                known = None if e.dtype.is_float else Interval.of_type(e.dtype)
                return self.let(f"S.call({', '.join([str(site), function, *codes])})", known)

    def checked(self, e: ir.Expr, code: str, known: Interval | None) -> Value:
        """Return a result that must fit its type, checked unless the range shows that it does."""
        whole = Interval.of_type(e.dtype)
        if known is not None and known.within(whole):
            return self.let(code, known)
        value = self.let(code, whole if known is None else known.intersect(whole))
        self.line(
            f"if not {whole.low} <= {value.code} <= {whole.high}:"
            f" overflow({self.sites.add(e)}, {value.code}, {self.dtype(e.dtype)})"
        )
        return value

    def int_binary(self, e: ir.Binary) -> Value:
        a, b, op = self.expr(e.a), self.expr(e.b), e.op
        if op in _ARITHMETIC:
            known = None
            if a.range and b.range:
                known = {
                    ir.BinaryOp.ADD: Interval.__add__,
                    ir.BinaryOp.SUB: Interval.__sub__,
                    ir.BinaryOp.MUL: Interval.__mul__,
                }[op](a.range, b.range)
            return self.checked(e, f"{a.code} {_ARITHMETIC[op]} {b.code}", known)
        if op.is_comparison:
            return self.let(f"{a.code} {op.value} {b.code}")
        if op in _BITS:
            return self.let(f"{a.code} {_BITS[op]} {b.code}")
        if op in (ir.BinaryOp.MIN, ir.BinaryOp.MAX):
            return self.extremum(a, b, op)
        if op in (ir.BinaryOp.SHIFT_LEFT, ir.BinaryOp.SHIFT_RIGHT):
            return self.shift(e, a, b)
        return self.division(e, a, b)

    def extremum(self, a: Value, b: Value, op: ir.BinaryOp) -> Value:
        sign = "<" if op is ir.BinaryOp.MIN else ">"
        known = None
        if a.range and b.range:
            pick = min if op is ir.BinaryOp.MIN else max
            known = Interval(pick(a.range.low, b.range.low), pick(a.range.high, b.range.high))
        return self.let(f"{a.code} if {a.code} {sign} {b.code} else {b.code}", known)

    def shift(self, e: ir.Binary, a: Value, b: Value) -> Value:
        bits = e.dtype.bits
        if b.range is None or b.range.low < 0 or b.range.high >= bits:
            text = f"'shift count ' + str({b.code}) + ' is outside [0, {bits - 1}]'"
            self.line(f"if not 0 <= {b.code} < {bits}: S.error({self.sites.add(e)}, {text})")
        if e.op is ir.BinaryOp.SHIFT_RIGHT:
            return self.let(f"{a.code} >> {b.code}")
        return self.checked(e, f"{a.code} << {b.code}", None)

    def division(self, e: ir.Binary, a: Value, b: Value) -> Value:
        if b.range is None or 0 in b.range:
            self.line(f"if not {b.code}: S.error({self.sites.add(e)}, 'division by zero')")
        if e.op is ir.BinaryOp.FLOORMOD:
            if b.range is None or -1 in b.range:
                # C computes the remainder with the quotient, whose overflow is undefined.
                overflows = f"{b.code} == -1 and {a.code} == {e.dtype.min}"
                self.line(f"if {overflows}: S.error({self.sites.add(e)}, 'the quotient overflows')")
            known = None
            if b.range and b.range.low > 0:
                known = Interval(0, b.range.high - 1)
            return self.let(f"{a.code} % {b.code}", known)
        code = f"{a.code} // {b.code}"
        if e.op is ir.BinaryOp.TRUNCDIV:
            code = f"A.truncated_division({a.code}, {b.code})"
        return self.checked(e, code, None)

    def float_binary(self, e: ir.Binary) -> Value:
        a, b, op = self.expr(e.a), self.expr(e.b), e.op
        single = e.a.dtype is DType.FLOAT32
        if op in _ARITHMETIC:
            code = f"{a.code} {_ARITHMETIC[op]} {b.code}"
            return self.let(f"f32({code})" if single else code)
        if op.is_comparison:
            return self.let(f"{a.code} {op.value} {b.code}")
        if op in (ir.BinaryOp.MIN, ir.BinaryOp.MAX):
            return self.extremum(a, b, op)
        if op is ir.BinaryOp.DIV:
            return self.let(f"A.divide({a.code}, {b.code}, {self.dtype(e.a.dtype)})")
        self.line(f"S.error({self.sites.add(e)}, 'operator has no meaning on floats')")
        return Value("0.0")

    def lazy(self, e: ir.Binary) -> Value:
        result = self.let(self.expr(e.a).code)
        self.line(f"if {'' if e.op is ir.BinaryOp.AND else 'not '}{result.code}:")
        self.depth += 1
        self.line(f"{result.code} = {self.expr(e.b).code}")
        self.depth -= 1
        return result

    def select(self, e: ir.Select) -> Value:
        condition = self.expr(e.condition)
        name = f"t{self.number()}"
        ranges: list[Interval | None] = []
        for head, branch in ((f"if {condition.code}:", e.then), ("else:", e.otherwise)):
            self.line(head)
            self.depth += 1
            value = self.expr(branch)
            self.line(f"{name} = {value.code}")
            self.depth -= 1
            ranges.append(value.range)
        first, second = ranges
        return Value(name, first.union(second) if first and second else None)

    def cast(self, e: ir.Cast) -> Value:
        value, source = self.expr(e.value), e.value.dtype
        if not source.is_float and not e.dtype.is_float:
            if source is DType.BOOL:
                return self.let(f"int({value.code})", Interval(0, 1))
            known = value.range or Interval.of_type(source)
            if known.within(Interval.of_type(e.dtype)):
                return Value(value.code, known)
            return self.checked(e, value.code, known)
        if e.dtype is DType.FLOAT32 and source is not DType.FLOAT64:
            return self.let(f"f32(float({value.code}))")
        dtypes = f"{self.dtype(source)}, {self.dtype(e.dtype)}"
        return self.let(f"S.convert({self.sites.add(e)}, {value.code}, {dtypes})")

    def load(self, e: ir.Load) -> Value:
        place = self.place(e.buffer)
        known = None if e.dtype.is_float else Interval.of_type(e.dtype)
        if place.scalar:
            name = f"s{place.number}"
            self.line(f"if {name} is None: S.uninitialised({self.sites.add(e)})")
            # Copied: a later store must not change a value that was already read.
            return self.let(name, known)
        offset = self.offset(e, place)
        number = place.number
        if e.buffer.scope is not ir.Scope.CONSTANT:
            full = int.from_bytes(b"\x01" * e.dtype.bytes, "little")
            site = self.sites.add(e)
            self.line(f"if k{number}[{offset}] != {full}: S.uninitialised({site})")
        return self.let(f"b{number}[{offset}]", known)


def _float32_rounder() -> Callable[[float], float]:
    """Round to float32 by storing into four bytes: the fastest way that Python has."""
    cell = memoryview(bytearray(4)).cast("f")

    def f32(value: float) -> float:
        cell[0] = value
        return cell[0]

    return f32
