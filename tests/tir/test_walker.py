"""One walker over statements: the order of execution, and what is known in a body."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import given, settings

from microtir.tir import execution, ir
from microtir.tir.analysis.regions import regions
from microtir.tir.text import parse_function
from microtir.tir.visitor import Node, invokes_of, statements_of, walk
from microtir.tir.walker import Call, StatementWalker
from tests.tir.random_programs import functions

MAIN = """
func main(x: int8[4], y: int8[4], flag: bool[]):
  invoke first(view(x, int8[4], 0), view(y, int8[4], 0))
  for i in range(0, 5):
    invoke idle(view(y, int8[4], 0))
  for j in range(0, 3):
    let k: int32 = j * 2
    if flag[]:
      invoke rows(view(x, int8[4], 0), k, k + 2)
    else:
      invoke last(view(x, int8[4], 0), j)
"""

KERNELS = """
meaning add(a: int8[2], b: int8[2]):
  for i in range(0, 2):
    b[i] = b[i] + a[i]

func f(x: int8[4], y: int8[4]):
  call add(x at [1], y at [2]):
    reads a[0 +: 2]
    reads b[0 +: 2]
    writes b[0 +: 2]
"""


class _Recorder(StatementWalker[int, tuple[object, int]]):
    """Yields what it meets, and how many loops, Lets and branches are around it."""

    def loop(self, s: ir.For, known: int) -> Iterator[tuple[object, int]]:
        yield from self.statement(s.body, known + 1)

    def inside_let(self, s: ir.Let, known: int) -> int:
        return known + 1

    def branch(
        self, condition: ir.Expr, s: ir.Stmt, known: int, *, truth: bool
    ) -> Iterator[tuple[object, int]]:
        yield from self.statement(s, known + 1)

    def reads(self, items: Sequence[ir.Expr], known: int) -> Iterator[tuple[object, int]]:
        return ((node, known) for item in items for node in walk(item))

    def store(self, s: ir.Store, known: int) -> Iterator[tuple[object, int]]:
        yield s, known

    def call(self, s: Call, known: int) -> Iterator[tuple[object, int]]:
        yield s, known


def _depths(s: Node, depth: int) -> Iterator[tuple[object, int]]:
    """Yield the same, by the nesting of the tree."""
    if isinstance(s, ir.Store):
        yield from ((node, depth) for node in walk(s) if node is not s)
        yield s, depth
        return
    if not isinstance(s, ir.Seq | ir.Allocate | ir.For | ir.Let | ir.If):
        yield from ((node, depth) for node in walk(s))
        return
    parts: tuple[ir.Expr, ...] = ()
    match s:
        case ir.For(_, start, stop):
            parts = start, stop
        case ir.Let(_, value):
            parts = (value,)
        case ir.If(condition):
            parts = (condition,)
        case _:
            pass
    inside = depth + isinstance(s, ir.For | ir.Let | ir.If)
    for part in parts:
        yield from _depths(part, depth)
    bodies = (
        s.statements if isinstance(s, ir.Seq)
        else (s.then, *([s.otherwise] if s.otherwise else [])) if isinstance(s, ir.If)
        else (s.body,)
    )  # fmt: skip
    for body in bodies:
        yield from _depths(body, inside)


@given(functions())
@settings(max_examples=40)
def test_a_walk_meets_all_that_is_read_and_written(func: ir.PrimFunc) -> None:
    """Each expression comes before what is done with it, and each knows its surroundings."""
    met = list(_Recorder().statement(func.body, 0))
    expected = list(_depths(func.body, 0))
    assert [(id(node), depth) for node, depth in met] == [(id(n), depth) for n, depth in expected]


def test_calls_of_main_are_executed_turn_by_turn() -> None:
    """Loops run with their values, both branches do, and a loop without a value has two turns."""
    main = parse_function(MAIN)
    assert [(call.function, scalars) for call, scalars in execution.calls(main.body)] == [
        ("first", ()), ("idle", ()), ("idle", ()),
        ("rows", (0, 2)), ("last", (0,)), ("rows", (2, 4)), ("last", (1,)),
        ("rows", (4, 6)), ("last", (2,)),
    ]  # fmt: skip
    short = [call.function for call, _ in execution.calls(main.body, idle_turns=1)]
    assert short.count("idle") == 1
    conditions = [e for e, _ in execution.events(main.body) if isinstance(e, ir.Load)]
    assert len(conditions) == 3


def test_steps_and_statements_of_main() -> None:
    """Calls are numbered as they stand; statements are those that run one after the other."""
    main = parse_function(MAIN)
    assert [call.function for call in invokes_of(main)] == ["first", "idle", "rows", "last"]
    assert [type(s) for s in statements_of(main.body)] == [ir.Invoke, ir.For, ir.For]


def test_regions_of_a_kernel_begin_with_those_that_it_writes() -> None:
    """A kernel may write before it reads, so that writes count first."""
    (call,) = (n for n in walk(parse_function(KERNELS)) if isinstance(n, ir.KernelCall))
    touched = [(arg.buffer.name, region.extent, w) for arg, region, w in regions(call)]
    assert touched == [("y", (2,), True), ("x", (2,), False), ("y", (2,), False)]
