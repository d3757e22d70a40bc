"""The order in which one call reads and writes its parameters.

Part of the checker: it executes what the planner argues about, and tells the planner no more than
whether a row reads what was there before it.  The body becomes a Python function
with the loops of the body around whatever is written; what is read between two writes counts by
its extent, worked out for loops inside from the ends of their ranges.  A micro-kernel may write all
that it declares before it reads anything.  A call whose loops around writes depend on data has no
order that could be relied on, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache

from microtir.dtype import DType
from microtir.errors import MemoryPlanError
from microtir.tir import ir
from microtir.tir.analysis.bounds import Bounds
from microtir.tir.analysis.interval import Interval
from microtir.tir.analysis.regions import elements, reach
from microtir.tir.visitor import buffers_read, buffers_written, children, walk, walk_statements

Access = tuple[bool, int, int, int]
"""Tuple: whether it writes, the position of a parameter, the first element, the end."""

_Ends = tuple[str, str]
"""Texts of the lowest and the highest value of an expression."""

_MONOTONIC: Mapping[ir.BinaryOp, str] = {
    ir.BinaryOp.ADD: "({} + {})",
    ir.BinaryOp.MIN: "min({}, {})",
    ir.BinaryOp.MAX: "max({}, {})",
    ir.BinaryOp.AND: "({} and {})",
    ir.BinaryOp.OR: "({} or {})",
}
# Whether a comparison surely holds, and whether it may.
_COMPARISONS: Mapping[ir.BinaryOp, _Ends] = {
    ir.BinaryOp.LT: ("({ah} < {bl})", "({al} < {bh})"),
    ir.BinaryOp.LE: ("({ah} <= {bl})", "({al} <= {bh})"),
    ir.BinaryOp.GT: ("({al} > {bh})", "({ah} > {bl})"),
    ir.BinaryOp.GE: ("({al} >= {bh})", "({ah} >= {bl})"),
    ir.BinaryOp.EQ: ("({al} == {ah} == {bl} == {bh})", "({al} <= {bh} and {bl} <= {ah})"),
    ir.BinaryOp.NE: ("({al} > {bh} or {bl} > {ah})", "not ({al} == {ah} == {bl} == {bh})"),
}


def trace(
    function: ir.PrimFunc, scalars: Sequence[int], followed: Collection[int] | None = None
) -> list[Access]:
    """Return the accesses of a call to its parameters, in the order of execution.

    Args:
        function: that is called.
        scalars: its integer arguments.
        followed: positions of the parameters that count; all by default.

    Raises:
        MemoryPlanError: the order depends on what the call computes.
    """
    positions = range(len(function.params)) if followed is None else followed
    accesses: list[Access] = []
    _compiled(function, frozenset(positions))(accesses.append, *scalars)
    return accesses


@lru_cache(maxsize=4096)
def _compiled(function: ir.PrimFunc, followed: frozenset[int]) -> Callable[..., None]:
    writer = _Writer(function, followed)
    writer.stmt(function.body, 1)
    variables = [p for p in function.params if isinstance(p, ir.Var)]
    head = f"def run({', '.join(['note', *(writer.name(v) for v in variables)])}):"
    scope: dict[str, object] = {"unknown": writer.unknown}
    exec("\n".join([head, *writer.lines, " pass"]), scope)  # text made right here
    run = scope["run"]
    assert callable(run)
    return run


class _Writer:
    """Prints a body as Python that notes accesses.

    A variable of a loop around writes is one Python variable; one of another loop is two.
    """

    def __init__(self, function: ir.PrimFunc, followed: Collection[int]) -> None:
        self.where = function.name
        self.params = {
            p: n
            for n, p in enumerate(function.params)
            if isinstance(p, ir.Buffer) and n in followed
        }
        self.lines: list[str] = []
        self.names: dict[ir.Var, str] = {}
        variables = [p for p in function.params if isinstance(p, ir.Var)]
        self.ends: dict[ir.Var, _Ends] = {v: (self.name(v), self.name(v)) for v in variables}

    def name(self, var: ir.Var) -> str:
        return self.names.setdefault(var, f"v{len(self.names)}")

    def line(self, depth: int, text: str) -> None:
        self.lines.append(" " * depth + text)

    def stmt(self, s: ir.Stmt, depth: int) -> None:
        match s:
            case ir.Seq(statements):
                for inner in statements:
                    self.stmt(inner, depth)
            case ir.For():
                self.loop(s, depth)
            case ir.Let(var, value, body):
                self.reads((value,), depth)
                if value.dtype.is_int:
                    self.let(var, self.value(value), depth)
                self.stmt(body, depth)
            case ir.If(condition, then, otherwise):
                self.reads((condition,), depth)
                surely, perhaps = self.value(condition)
                self.line(depth, f"if {perhaps}:")
                self.block(then, depth)
                if otherwise is not None:
                    self.line(depth, f"if not {surely}:")
                    self.block(otherwise, depth)
            case ir.Allocate(_, body):
                self.stmt(body, depth)
            case ir.Store(buffer, indices, value):
                self.reads((*indices, value), depth)
                self.access(buffer, indices, (0, 1), depth, is_write=True)
            case ir.KernelCall():
                self.kernel(s, depth)
            case ir.ExternCall():
                self.extern(s, depth)
            case _:
                raise self.unknown(type(s).__name__)

    def let(self, var: ir.Var, ends: _Ends, depth: int) -> None:
        low = high = name = self.name(var)
        if ends[0] != ends[1]:
            low, high = f"{name}l", f"{name}h"
            self.line(depth, f"{high} = {ends[1]}")
        self.line(depth, f"{low} = {ends[0]}")
        self.ends[var] = low, high

    def block(self, s: ir.Stmt, depth: int) -> None:
        self.stmt(s, depth + 1)
        self.line(depth + 1, "pass")

    def loop(self, s: ir.For, depth: int) -> None:
        self.reads((s.start, s.stop), depth)
        name, (low, low_high), (stop_low, stop) = (
            self.name(s.var),
            self.value(s.start),
            self.value(s.stop),
        )
        if any(buffer in self.params for buffer in buffers_written(s.body)):
            if s.kind is ir.LoopKind.VECTORIZED:
                raise self.unknown(f"loop over '{s.var.name}'")
            if (low, stop_low) != (low_high, stop):
                # The ends may still be the same in every execution.
                self.line(depth, f"if {low} != {low_high} or {stop_low} != {stop}:")
                what = f"loop over '{s.var.name}'"
                self.line(depth + 1, f"raise unknown({what!r})")
            self.ends[s.var] = (name, name)
            self.line(depth, f"for {name} in range({low}, {stop}):")
        else:
            self.let(s.var, (low, f"{stop} - 1"), depth)
            self.line(depth, f"if {' <= '.join(self.ends[s.var])}:")
        self.block(s.body, depth)

    def kernel(self, s: ir.KernelCall, depth: int) -> None:
        arguments = dict(zip(s.meaning.params, s.args, strict=True))
        self.arguments(s.args, depth)
        for is_write, regions in ((True, s.contract.writes), (False, s.contract.reads)):
            for region in regions:
                arg = arguments[region.buffer]
                if isinstance(arg, ir.BufferArgument) and arg.buffer in self.params:
                    span = reach(region, arguments)
                    self.access(arg.buffer, arg.indices, span, depth, is_write=is_write)

    def extern(self, s: ir.ExternCall, depth: int) -> None:
        self.arguments(s.args, depth)
        for is_write, used in ((True, s.function.writes), (False, s.function.reads)):
            for param, arg in zip(s.function.params, s.args, strict=True):
                if (
                    isinstance(arg, ir.BufferArgument)
                    and isinstance(param, ir.Buffer)
                    and param in used
                ):
                    span = 0, elements(param)
                    self.access(arg.buffer, arg.indices, span, depth, is_write=is_write)

    def arguments(self, args: Sequence[ir.BufferArgument | ir.Expr], depth: int) -> None:
        for arg in args:
            self.reads(arg.indices if isinstance(arg, ir.BufferArgument) else (arg,), depth)

    def reads(self, items: Sequence[ir.Expr], depth: int) -> None:
        for item in items:
            match item:
                case ir.Load(buffer, indices):
                    self.reads(indices, depth)
                    self.access(buffer, indices, (0, 1), depth, is_write=False)
                case ir.Select(condition, then, otherwise) if any(self.loads(item)):
                    self.reads((condition,), depth)
                    surely, perhaps = self.value(condition)
                    for test, branch in ((perhaps, then), (f"not {surely}", otherwise)):
                        self.line(depth, f"if {test}:")
                        self.reads((branch,), depth + 1)
                        self.line(depth + 1, "pass")
                case _:
                    if any(self.loads(item)):
                        self.reads(children(item), depth)  # type: ignore[arg-type]  # Exprs

    def loads(self, e: ir.Expr) -> Iterator[bool]:
        """Yield whether each load of an expression is one that counts."""
        return (isinstance(node, ir.Load) and node.buffer in self.params for node in walk(e))

    def access(
        self,
        buffer: ir.Buffer,
        indices: Sequence[ir.Expr],
        span: tuple[int, int],
        depth: int,
        *,
        is_write: bool,
    ) -> None:
        if buffer not in self.params:
            return
        low, high = "0", "0"
        for index, extent in zip(indices, buffer.shape, strict=True):
            first, last = self.value(index)
            if first == last:
                low, high = f"({low} * {extent} + {first})", f"({high} * {extent} + {last})"
            else:
                low = f"({low} * {extent} + max({first}, 0))"
                high = f"({high} * {extent} + min({last}, {extent} - 1))"
        number = self.params[buffer]
        self.line(depth, f"note(({is_write}, {number}, {low} + {span[0]}, {high} + {span[1]}))")

    def value(self, e: ir.Expr) -> _Ends:
        """Return the lowest and the highest value of an integer expression, or of a condition."""
        match e:
            case ir.IntImm(value):
                return str(value), str(value)
            case ir.Var() if e in self.ends:
                return self.ends[e]
            case ir.Load(buffer) if not buffer.dtype.is_float:
                known = Bounds().buffer(buffer)
                return str(known.low), str(known.high)
            case ir.Select(condition, then, otherwise):
                return self.select(self.value(condition), self.value(then), self.value(otherwise))
            case ir.Cast(_, value) if value.dtype.is_int:
                return self.value(value)
            case ir.Unary(ir.UnaryOp.NEG, a):
                low, high = self.value(a)
                return f"(-{high})", f"(-{low})"
            case ir.Unary(ir.UnaryOp.NOT, a):
                low, high = self.value(a)
                return f"(not {high})", f"(not {low})"
            case ir.Binary() if not e.a.dtype.is_float:
                return self.binary(e)
            case _:
                return self.anything(e.dtype)

    def binary(self, e: ir.Binary) -> _Ends:
        (al, ah), (bl, bh) = self.value(e.a), self.value(e.b)
        op = e.op
        if op in _MONOTONIC:
            return _MONOTONIC[op].format(al, bl), _MONOTONIC[op].format(ah, bh)
        if op in _COMPARISONS:
            surely, perhaps = (t.format(al=al, ah=ah, bl=bl, bh=bh) for t in _COMPARISONS[op])
            return surely, perhaps
        if op is ir.BinaryOp.SUB:
            return f"({al} - {bh})", f"({ah} - {bl})"
        if op is ir.BinaryOp.MUL and isinstance(e.b, ir.IntImm) and e.b.value >= 0:
            return f"({al} * {bl})", f"({ah} * {bl})"
        if op is ir.BinaryOp.MUL:
            corners = ", ".join(f"{a} * {b}" for a in (al, ah) for b in (bl, bh))
            return f"min({corners})", f"max({corners})"
        if op in (ir.BinaryOp.FLOORDIV, ir.BinaryOp.FLOORMOD) and isinstance(e.b, ir.IntImm):
            if op is ir.BinaryOp.FLOORDIV:
                return f"({al} // {bl})", f"({ah} // {bl})"
            if al == ah:
                return f"({al} % {bl})", f"({al} % {bl})"
            same = f"{al} // {bl} == {ah} // {bl}"
            return f"({al} % {bl} if {same} else 0)", f"({ah} % {bl} if {same} else {bl} - 1)"
        return self.anything(e.dtype)

    def select(self, condition: _Ends, then: _Ends, otherwise: _Ends) -> _Ends:
        surely, perhaps = condition
        low, high = (
            f"({a} if {surely} else {pick}({a}, {b}) if {perhaps} else {b})"
            for pick, a, b in zip(("min", "max"), then, otherwise, strict=True)
        )
        return low, high

    def anything(self, dtype: DType) -> _Ends:
        """Return what depends on data."""
        if dtype.is_float:
            raise self.unknown("floating-point index")
        whole = Interval.of_type(dtype)
        return str(whole.low), str(whole.high)

    def unknown(self, what: str) -> MemoryPlanError:
        return MemoryPlanError(f"the order of accesses of a {what} is not known", where=self.where)


def keeps_old_values(function: ir.PrimFunc, scalars: Sequence[int]) -> frozenset[ir.Buffer]:
    """Return the parameters that a call writes, but of which it reads what was there before.

    What is written on a condition counts as not written, and so does what has no known order.
    """
    both, doubtful = _read_and_written(function)
    filled: dict[int, bytearray] = {}
    old = set(doubtful)
    try:
        accesses = trace(function, scalars, both) if both else []
    except MemoryPlanError:
        return frozenset(both.values())
    for is_write, number, first, stop in accesses:
        buffer = both[number]
        flags = filled.setdefault(number, bytearray(elements(buffer)))
        if is_write:
            flags[first:stop] = b"\1" * (stop - first)
        elif flags.find(0, first, stop) >= 0:
            old.add(buffer)
    return frozenset(old)


# A call of many rows asks for each of them.
@lru_cache(maxsize=64)
def _read_and_written(
    function: ir.PrimFunc,
) -> tuple[Mapping[int, ir.Buffer], frozenset[ir.Buffer]]:
    """Return the parameters that are read and written, and those written on a condition."""
    written, read = set(buffers_written(function.body)), set(buffers_read(function.body))
    both = {
        n: p
        for n, p in enumerate(function.params)
        if isinstance(p, ir.Buffer) and p in written and p in read
    }
    doubtful = {
        buffer
        for statement in walk_statements(function.body)
        if isinstance(statement, ir.If)
        for buffer in buffers_written(statement)
    }
    return both, frozenset(doubtful.intersection(both.values()))


def overwrites_unread(
    accesses: Sequence[Access], starts: Mapping[int, int], sizes: Mapping[int, int]
) -> bool:
    """Return whether a call uses a byte that it has written through another parameter.

    Args:
        accesses: of the call, in order.
        starts: where each parameter starts in memory, by its position.
        sizes: bytes of an element of each.
    """
    ends = [starts[n] + stop * sizes[n] for _, n, _, stop in accesses]
    # A character for each byte: who has written it, counted from 1.
    owners = bytearray(max(ends, default=0))
    marks = {n: bytes([number]) for number, n in enumerate(sorted(starts), 1)}
    written = sorted({n for is_write, n, _, _ in accesses if is_write})
    for is_write, param, first, stop in accesses:
        size, base = sizes[param], starts[param]
        at, end = base + first * size, base + stop * size
        for other in written:
            if other != param and owners.find(marks[other], at, end) >= 0:
                return True
        if is_write:
            owners[at:end] = marks[param] * (end - at)
    return False


def keeps_old_rows(function: ir.PrimFunc, scalars: Sequence[int]) -> frozenset[ir.Buffer]:
    """Return the parameters that any row of a call writes and expects an old value of."""
    if function.row_range is None:
        return keeps_old_values(function, scalars)
    *others, first, stop = scalars
    rows = ((*others, row, row + 1) for row in range(first, stop))
    return frozenset().union(*(keeps_old_values(function, row) for row in rows))
