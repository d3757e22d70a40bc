"""Nests on row numbers: what runs when, and how high the rings must be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from microtir.dtype import DType
from microtir.executor.nest import loops
from microtir.graph.ir import Node, SourceLocation, Tensor, TensorType
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common.rows import RowWindow
from microtir.plan.ir import Candidate, Cost, LayoutKind, PlannedOperator
from microtir.plan.nest import Runs, histories, nest_of, runs_of
from microtir.tir import execution
from microtir.tir.ir import Expr, Invoke


def image(name: str, height: int) -> Tensor:
    """A tensor of some rows."""
    return Tensor(name, TensorType((1, height, 1, 1), DType.INT8))


def operator(inputs: Sequence[Tensor], output: Tensor, *windows: RowWindow) -> PlannedOperator:
    """An operator that reads its inputs through windows."""
    kinds = (LayoutKind.NHWC,) * len(inputs)
    candidate = Candidate("direct", kinds, kinds[:1], windows, 0, (Cost(1),), (0,))
    source = SourceLocation("test", 0, "X")
    node = Node(Add(), tuple(inputs), (output,), output.name, source)
    return PlannedOperator(node, candidate)


windows = st.builds(RowWindow, st.integers(1, 3), st.integers(-2, 0), st.integers(1, 4)).filter(
    lambda w: w.offset + w.extent > 0
)

any_nest = given(
    height=st.integers(1, 12),
    steps=st.lists(windows, min_size=1, max_size=4),
    residual=st.booleans(),
    rows_per_call=st.integers(1, 3),
)


def chain(height: int, steps: Sequence[RowWindow], residual: bool) -> list[PlannedOperator]:
    """A chain of windows; with `residual` its end is added to its beginning, row by row."""
    tensors = [image("x", height), image("t0", height)]
    found = [operator(tensors[:1], tensors[1], RowWindow())]
    for number, window in enumerate(steps, 1):
        rows = (tensors[-1].type.rows - window.offset - window.extent) // window.stride + 1
        assume(rows >= 1)
        tensors.append(image(f"t{number}", rows))
        found.append(operator(tensors[-2:-1], tensors[-1], window))
    if residual:
        assume(tensors[-1].type.rows <= height)
        end = image("sum", tensors[-1].type.rows)
        found.append(operator([tensors[-1], tensors[1]], end, RowWindow(), RowWindow()))
    return found


def calls(runs: Runs) -> Iterator[tuple[PlannedOperator, int, int]]:
    """The operator of each call, its first row and the one behind its last."""
    for number, first, stop in zip(runs.ran, runs.first, runs.stop, strict=True):
        yield runs.operators[number], int(first), int(stop)


def fits(runs: Runs, tensor: Tensor, height: int) -> bool:
    """Play a ring of so many slots: every row that is read must be the one in its slot."""
    slots: dict[int, int] = {}
    for operator, first, stop in calls(runs):
        if tensor in operator.inputs:
            window, rows = operator.window(tensor), tensor.type.rows
            for y in range(first, stop):
                for row in range(window.first(y, rows), window.needed(y + 1, rows)):
                    if slots.get(row % height) != row:
                        return False
        if operator.node.output is tensor:
            slots.update({row % height: row for row in range(first, stop)})
    return True


@settings(max_examples=200)
@any_nest
def test_ring_heights_suffice_and_are_least(
    height: int, steps: list[RowWindow], residual: bool, rows_per_call: int
) -> None:
    """Every row is there when it is read, and with one slot less one is not."""
    operators = chain(height, steps, residual)
    nest = nest_of(operators, rows_per_call)
    assert nest is not None
    runs = runs_of(nest)
    made = [op.node.output for op in operators[:-1]]
    for tensor, history in histories(runs, made).items():
        assert not history.missing
        assert fits(runs, tensor, history.height)
        if history.height > history.span:
            assert not fits(runs, tensor, history.height - 1)


@settings(max_examples=100)
@any_nest
def test_no_row_is_computed_twice(
    height: int, steps: list[RowWindow], residual: bool, rows_per_call: int
) -> None:
    """Each operator computes rows 0, 1, 2 ... once, and the last operator all of its rows."""
    operators = chain(height, steps, residual)
    nest = nest_of(operators, rows_per_call)
    assert nest is not None
    done = dict.fromkeys(operators, 0)
    for operator, first, stop in calls(runs_of(nest)):
        assert first == done[operator]
        done[operator] = stop
        assert stop - first <= rows_per_call or operator is operators[0]
    assert done[operators[-1]] == operators[-1].rows


@settings(max_examples=200)
@any_nest
def test_the_loops_of_main_make_the_calls_that_were_planned(
    height: int, steps: list[RowWindow], residual: bool, rows_per_call: int
) -> None:
    """Bounds that follow from the loops around them give the rows that the plan counts."""
    operators = chain(height, steps, residual)
    nest = nest_of(operators, rows_per_call)
    assert nest is not None
    names = {operator: f"layer{number}" for number, operator in enumerate(operators)}

    def invoke(operator: PlannedOperator, first: Expr, stop: Expr) -> Invoke:
        return Invoke(names[operator], (first, stop))

    made = [
        (call.function, *rows)
        for call, rows in execution.calls(loops(nest, invoke))
        if rows[0] < rows[1]
    ]
    planned = [(names[operator], first, stop) for operator, first, stop in calls(runs_of(nest))]
    assert made == planned


def test_operators_that_do_not_feed_the_last_one_make_no_nest() -> None:
    """A branch that ends elsewhere cannot run at the demand of this one."""
    x, a, b = image("x", 4), image("a", 4), image("b", 4)
    operators = [operator([x], a, RowWindow()), operator([x], b, RowWindow())]
    assert nest_of(operators) is None
