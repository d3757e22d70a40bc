"""Elementwise operators that depend on one int8 element become one table, where that pays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Quantization, Tensor
from microtir.graph.operator import Operator
from microtir.operators.activations.definition import HardSwish, Logistic, Tanh
from microtir.operators.arithmetic.definition import Add, Maximum, Mul, Sub
from microtir.operators.control.definition import EndRepeat, Repeat
from microtir.operators.conversion.definition import CastTo, Dequantize, Quantize, Tabulated
from microtir.operators.indexing.definition import Gather
from microtir.operators.movement.definition import Relabel
from microtir.operators.state.definition import Assign
from microtir.operators.unary.definition import Neg
from microtir.rewrite.optimise import Tabulate
from microtir.rewrite.reference import execute
from microtir.rewrite.verify import verify
from tests.support.graphs import constant, graph, node, per_channel, quant, tensor

SHAPE = (1, 4, 8, 8)
LOGISTIC = quant(1 / 256, -128)
ALL = np.arange(-128, 128).astype(np.int8).reshape(SHAPE)


def _int8(name: str, shape: Sequence[int] = SHAPE) -> Tensor:
    return tensor(name, shape, DType.INT8, quant(0.04, 3))


def _swish(shape: Sequence[int] = SHAPE) -> tuple[list[Node], Tensor, Tensor]:
    """Nodes of x * logistic(x), with x and the result."""
    x, y = _int8("x", shape), _int8("y", shape)
    gate = tensor("gate", shape, DType.INT8, LOGISTIC)
    return [node(Logistic(), [x], gate), node(Mul(), [x, gate], y)], x, y


def _tabled(before: Graph, byte_price: int | None = 0) -> Graph:
    """Return what the pass makes of a graph: every output is the same for all stored values."""
    verify(before)
    after = Tabulate(byte_price)(before)
    verify(after)
    values = {x.name: ALL.reshape(x.shape) for x in before.inputs}
    expected, actual = (execute(each, values) for each in (before, after))
    for name, value in expected.items():
        np.testing.assert_array_equal(actual[name], value)
    assert Tabulate(byte_price)(after) is after
    return after


def _ops(result: Graph) -> list[type[Operator]]:
    return [type(each.op) for each in result.nodes]


def test_product_with_a_function_of_itself_is_one_table() -> None:
    """What swish is in a model file is one operator, which reads what both read."""
    nodes, x, y = _swish()
    after = _tabled(graph(nodes, [x], [y]))
    assert _ops(after) == [Tabulated]
    assert after.nodes[0].inputs == (x,) and after.nodes[0].output is y


def test_floats_between_integers_are_part_of_a_table() -> None:
    """Nobody sees the real numbers on the way."""
    x, y = _int8("x"), _int8("y")
    real, turned = tensor("real", SHAPE), tensor("turned", SHAPE)
    nodes = [
        node(Dequantize(), [x], real), node(Neg(), [real], turned), node(Quantize(), [turned], y)
    ]  # fmt: skip
    assert _ops(_tabled(graph(nodes, [x], [y]), None)) == [Tabulated]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 9)), max_size=7))
def test_random_regions(steps: list[tuple[int, int, int]]) -> None:
    """Whatever reads whatever, every output is as before, and one with no other reader is alone."""
    x = _int8("x")
    made = [x]
    nodes = []
    two = constant("two", np.array([[90]], np.int8), quant(0.03, -7))
    for number, (kind, *picks) in enumerate(steps):
        a, b = (made[pick % len(made)] for pick in picks)
        op, inputs = (
            (HardSwish(), [a]), (Add(), [a, b]), (Mul(), [a, two]), (Sub(), [two, a]),
            (Maximum(), [a, b]), (Mul(), [a, b]),
        )[kind]  # fmt: skip
        made.append(_int8(f"t{number}"))
        nodes.append(node(op, inputs, made[-1]))
    if nodes:
        live = _live(nodes, made[-1])
        assert _ops(_tabled(graph(live, [x], [made[-1]]))) in ([Tabulated], [HardSwish])
        _tabled(graph(nodes, [x], [*made[1::2]]))


def _live(nodes: Sequence[Node], result: Tensor) -> list[Node]:
    read, live = {result}, []
    for each in reversed(nodes):
        if each.output in read:
            live.append(each)
            read.update(each.inputs)
    return live[::-1]


def test_what_others_read_is_where_a_region_begins() -> None:
    """A value that is an output, or that another operator reads, is computed once, by itself."""
    nodes, x, y = _swish()
    gate = nodes[0].output
    as_output = graph(nodes, [x], [y, gate])
    assert _tabled(as_output) is as_output
    double = node(Mul(), [y, constant("c", np.array(50, np.int8), quant(0.04))], _int8("double"))
    total = node(Add(), [double.output, _int8("other")], _int8("total"))
    two = graph([*nodes, double, total], [x, total.inputs[1]], [y, total.output])
    assert _ops(_tabled(two)) == [Tabulated, Tabulated, Add]


def test_what_depends_on_a_place_stays() -> None:
    """A constant for each channel, and an operand that is broadcast, are no one element."""
    x, y = _int8("x"), _int8("y")
    row = constant("row", np.arange(8).astype(np.int8), quant(0.04))
    column = _int8("column", (1, 4, 8, 1))
    for other, inputs in ((row, [x]), (column, [x, column])):
        before = graph(
            [node(Tanh(), [x], t := _int8("t")), node(Mul(), [t, other], y)], inputs, [y]
        )
        assert Tabulate()(before) is before


@pytest.mark.parametrize("quantization", [None, quant(0.1, 4)])
def test_integers_without_a_scale(quantization: Quantization | None) -> None:
    """Stored values are all that a table knows."""
    x, y = (tensor(name, SHAPE, DType.INT8, quantization) for name in "xy")
    real, least = tensor("real", SHAPE), constant("c", np.array(3, np.int8), quantization)
    cast = [node(CastTo(), [x], real), node(CastTo(), [real], y)]
    assert _ops(_tabled(graph(cast, [x], [y]))) == [Tabulated]
    assert _ops(_tabled(graph([node(Maximum(), [x, least], y)], [x], [y]))) == [Tabulated]


def _looked_up(values: np.ndarray, quantization: Quantization | None) -> tuple[list[Node], Tensor]:
    """Nodes that look x + 128 up among some values, and x."""
    x, y = _int8("x"), tensor("y", SHAPE, DType.INT8, quantization)
    stored, place = (tensor(name, SHAPE, DType.INT32) for name in ("stored", "place"))
    first = constant("first", np.array(128, np.int32))
    table = constant("table", values.astype(np.int8), quantization)
    return [
        node(CastTo(), [x], stored),
        node(Add(), [stored, first], place),
        node(Gather(), [table, place], y),
    ], x


@pytest.mark.parametrize("count", [1, 100, 256, 300])
def test_a_gather_of_constants_is_a_table(count: int) -> None:
    """Also with fewer entries than values, of which the last stands for all that are beyond."""
    values = np.random.default_rng(2).integers(-128, 128, count)
    nodes, x = _looked_up(values, quant(0.1, 2))
    assert _ops(_tabled(graph(nodes, [x], [nodes[-1].output]))) == [Tabulated]


def test_a_gather_of_rows_is_no_table() -> None:
    """A row of several values is more than an element, and what is computed is no constant."""
    nodes, x = _looked_up(np.arange(256), None)
    place = nodes[-1].inputs[1]
    rows = constant("rows", np.zeros((256, 2), np.int8))
    several = node(Gather(), [rows, place], tensor("several", (*SHAPE, 2), DType.INT8))
    computed = node(Gather(), [tensor("t", (256,), DType.INT8), place], nodes[-1].output)
    for last, inputs in ((several, [x]), (computed, [x, computed.inputs[0]])):
        before = graph([*nodes[:-1], last], inputs, [last.output])
        assert Tabulate()(before) is before


def test_scales_of_channels_are_no_function_of_an_element() -> None:
    """A channel of 256 would look like all stored values of one."""
    scales = per_channel(np.linspace(0.01, 0.1, 256).tolist(), 1)
    x, y = tensor("x", (1, 256), DType.INT8, scales), _int8("y", (1, 256))
    real = tensor("real", (1, 256))
    before = graph([node(Dequantize(), [x], real), node(Quantize(), [real], y)], [x], [y])
    assert _tabled(before) is before


def test_a_view_stays_one() -> None:
    """Another scale for the same stored values takes no code, and alone needs no table."""
    x, other, y = _int8("x"), tensor("o", SHAPE, DType.INT8, quant(0.08)), _int8("y")
    relabel = node(Relabel(), [x], other)
    alone = graph([relabel], [x], [other])
    assert _tabled(alone) is alone
    looked_up = graph([relabel, node(HardSwish(), [other], y)], [x], [y])
    assert _tabled(looked_up) is looked_up


@pytest.mark.parametrize(("elements", "price", "is_table"), [
    (8, 0, True), (8, 16, False), (512, 16, True), (512, None, False),
])  # fmt: skip
def test_one_product_with_a_constant(elements: int, price: int | None, is_table: bool) -> None:
    """The bytes of a table have to be worth it, where flash counts."""
    x, y = _int8("x", (1, elements)), _int8("y", (1, elements))
    product = node(Mul(), [x, constant("c", np.array(50, np.int8), quant(0.04))], y)
    after = Tabulate(price)(graph([product], [x], [y]))
    assert _ops(after) == [Tabulated if is_table else Mul]


def test_swish_is_one_table_whatever_the_goal() -> None:
    """A table that takes the place of another one takes no flash."""
    nodes, x, y = _swish((1, 256))
    assert _ops(_tabled(graph(nodes, [x], [y]), None)) == [Tabulated]


def test_a_region_lies_within_one_turn() -> None:
    """What a loop finds is not computed anew in each of its turns, whose values share memory."""
    x, before, inside = _int8("x"), _int8("before"), _int8("inside")
    begin, turn, total, new, end = (_int8(name) for name in ("b", "turn", "total", "new", "end"))
    by = constant("c", np.array(50, np.int8), quant(0.04))
    nodes = [
        node(HardSwish(), [x], before),
        node(Assign(), [x], begin),
        node(Repeat(3), [begin], turn),
        node(Mul(), [before, by], inside),
        node(Add(), [turn, inside], total),
        node(Assign(), [total], new),
        node(EndRepeat(), [turn, new], end),
    ]
    after = _tabled(graph(nodes, [x], [end]))
    assert _ops(after) == [HardSwish, Assign, Repeat, Tabulated, Add, Assign, EndRepeat]
