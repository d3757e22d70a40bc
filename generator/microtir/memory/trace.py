"""The order in which one call reads and writes its parameters, element by element.

Part of the checker: it enumerates what the planner argues about.  A call whose accesses depend on
data, or on a micro-kernel, has no order that could be relied on, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from microtir.errors import MemoryPlanError
from microtir.tir.ir import (
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    Expr,
    For,
    IntImm,
    Let,
    Load,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Var,
)
from microtir.tir.visitor import walk

Access = tuple[bool, int, int]
"""Whether it writes, the position of the parameter, and the element."""

_OPERATORS: Mapping[BinaryOp, str] = {
    BinaryOp.ADD: "({} + {})",
    BinaryOp.SUB: "({} - {})",
    BinaryOp.MUL: "({} * {})",
    BinaryOp.FLOORDIV: "({} // {})",
    BinaryOp.FLOORMOD: "({} % {})",
    BinaryOp.MIN: "min({}, {})",
    BinaryOp.MAX: "max({}, {})",
}


def trace(function: PrimFunc, scalars: Sequence[int]) -> list[Access]:
    """Return every access of a call to its parameters, in the order of execution.

    Raises:
        MemoryPlanError: the order depends on what the call computes.
    """
    writer = _Writer(function)
    writer.stmt(function.body, 1)
    scope: dict[str, object] = {}
    variables = [p for p in function.params if isinstance(p, Var)]
    head = f"def run({', '.join(['note', *(writer.name(v) for v in variables)])}):"
    exec("\n".join([head, *writer.lines, " pass"]), scope)  # text made right here
    run = scope["run"]
    assert callable(run)
    accesses: list[Access] = []
    run(accesses.append, *scalars)
    return accesses


class _Writer:
    """Python text that goes through the loops and notes the accesses."""

    def __init__(self, function: PrimFunc) -> None:
        self.where = function.name
        self.params = {p: i for i, p in enumerate(function.params) if isinstance(p, Buffer)}
        self.lines: list[str] = []
        self.names: dict[Var, str] = {}

    def name(self, var: Var) -> str:
        return self.names.setdefault(var, f"v{len(self.names)}")

    def line(self, depth: int, text: str) -> None:
        self.lines.append(" " * depth + text)

    def stmt(self, s: Stmt, depth: int) -> None:
        match s:
            case Seq(statements):
                for inner in statements:
                    self.stmt(inner, depth)
            case For(var, start, stop, body):
                self.reads((start, stop), depth)
                bounds = f"{self.expr(start)}, {self.expr(stop)}"
                self.line(depth, f"for {self.name(var)} in range({bounds}):")
                self.stmt(body, depth + 1)
                self.line(depth + 1, "pass")
            case Let(var, value, body):
                self.reads((value,), depth)
                if any(isinstance(n, Var) and n is var for n in self.index_variables(body)):
                    self.line(depth, f"{self.name(var)} = {self.expr(value)}")
                self.stmt(body, depth)
            case Store(buffer, indices, value):
                self.reads((*indices, value), depth)
                self.access(buffer, indices, depth, is_write=True)
            case _:
                raise MemoryPlanError(
                    f"the order of accesses of a {type(s).__name__} is not known", where=self.where
                )

    def index_variables(self, s: Stmt) -> Iterator[object]:
        """What indices and bounds within a statement are made of."""
        for node in walk(s):
            if isinstance(node, Load | Store):
                for index in node.indices:
                    yield from walk(index)
            elif isinstance(node, For):
                yield from walk(node.start)
                yield from walk(node.stop)

    def reads(self, items: Sequence[Expr], depth: int) -> None:
        for item in items:
            for node in walk(item):
                if isinstance(node, Load):
                    self.access(node.buffer, node.indices, depth, is_write=False)

    def access(
        self, buffer: Buffer, indices: Sequence[Expr], depth: int, *, is_write: bool
    ) -> None:
        if buffer not in self.params:
            return
        element = "0"
        for index, extent in zip(indices, buffer.shape, strict=True):
            element = f"({element} * {extent} + {self.expr(index)})"
        self.line(depth, f"note(({is_write}, {self.params[buffer]}, {element}))")

    def expr(self, e: Expr) -> str:
        match e:
            case IntImm(value):
                return str(value)
            case Var():
                return self.name(e)
            case Cast(_, value):
                return self.expr(value)
            case Binary(op, a, b) if op in _OPERATORS:
                return _OPERATORS[op].format(self.expr(a), self.expr(b))
            case _:
                raise MemoryPlanError(
                    f"an index that is a {type(e).__name__} has no known value", where=self.where
                )


def overwrites_unread(
    accesses: Sequence[Access], starts: Mapping[int, int], sizes: Mapping[int, int]
) -> bool:
    """Whether a call uses a byte that it has written through another parameter.

    Args:
        accesses: of the call, in order.
        starts: where each parameter starts in memory, by its position.
        sizes: bytes of an element of each.
    """
    owner: dict[int, int] = {}
    for is_write, param, element in accesses:
        size = sizes[param]
        first = starts[param] + element * size
        for byte in range(first, first + size):
            if owner.get(byte, param) != param:
                return True
            if is_write:
                owner[byte] = param
    return False
