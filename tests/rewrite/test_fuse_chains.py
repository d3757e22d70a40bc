"""Elementwise operators that follow each other become one loop, where that takes less."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import microtir
from microtir.config import CompilationConfig, Optimize
from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Tensor
from microtir.graph.operator import Operator
from microtir.module.ir_module import IRModule
from microtir.operators.activations.definition import Elu
from microtir.operators.arithmetic.definition import Add, Maximum, Mul, SquaredDifference, Sub
from microtir.operators.conditions.definition import Less
from microtir.operators.control.definition import EndRepeat, Repeat
from microtir.operators.conversion.definition import CastTo, Dequantize, Quantize
from microtir.operators.custom.definition import Custom
from microtir.operators.selection.definition import Select
from microtir.operators.state.definition import Assign
from microtir.operators.unary.definition import Abs, Square
from microtir.rewrite.optimise import FuseChains
from microtir.rewrite.reference import execute
from microtir.rewrite.verify import verify
from tests.support.graphs import constant, graph, node, per_channel, quant, tensor

SHAPE = (2, 3, 4)


def _floats(name: str, shape: Sequence[int] = SHAPE) -> Tensor:
    return tensor(name, shape)


def _constant(name: str, shape: Sequence[int]) -> Tensor:
    values = np.linspace(-2, 3, int(np.prod(shape)), dtype=np.float32)
    return constant(name, values.reshape(shape))


def _dear(_node: Node) -> int:
    return 1 << 20


def _fused(before: Graph, cost: Callable[[Node], int] = _dear) -> Graph:
    """Return what the pass makes of a graph, which gives the same."""
    verify(before)
    after = FuseChains(cost)(before)
    verify(after)
    rng = np.random.default_rng(5)
    values = {x.name: rng.integers(0, 90, x.shape).astype(x.dtype.value) for x in before.inputs}
    expected, actual = (execute(each, values) for each in (before, after))
    for name, value in expected.items():
        np.testing.assert_array_equal(actual[name], value)
    assert FuseChains(cost)(after) is after
    return after


def _ops(result: Graph) -> list[type[Operator]]:
    return [type(each.op) for each in result.nodes]


def _cast_chain() -> Graph:
    """Return uint8 that are cast, multiplied and added to."""
    x, a, b, y = (tensor(n, (1, 4, 4), DType.UINT8) for n in ("x", "a", "b", "y"))
    wide = [tensor(each.name, each.shape, DType.INT32) for each in (a, b, y)]
    twos = constant("twos", np.full((1, 4, 4), 2, np.int32))
    one = constant("one", np.array([1], np.int32))
    nodes = [
        node(CastTo(), [x], wide[0]),
        node(Mul(), [wide[0], twos], wide[1]),
        node(Add(), [wide[1], one], wide[2]),
    ]
    return graph(nodes, [x], [wide[2]])


@pytest.mark.parametrize("target", ["c", "c -mcpu=cortex-m4", "c -mcpu=cortex-m55"])
@pytest.mark.parametrize("goal", [Optimize.SPEED, Optimize.BALANCED, Optimize.RAM])
def test_chain_takes_no_workspace(target: str, goal: Optimize) -> None:
    """Cast, multiply and add need no tensor between them."""
    config = CompilationConfig(targets=target, module_name="chain", optimize=goal)
    lowered = microtir.lower(IRModule(graph=_cast_chain()).with_configuration(config))
    assert lowered.program is not None
    assert [each.name for each in lowered.program.graph.nodes] == ["y_node"]
    assert lowered.program.placement.workspace_size == 0


def test_chain_is_one_operator() -> None:
    """It reads what they read of others, and gives what the last one gives."""
    after = _fused(_cast_chain())
    (chain,) = after.nodes
    assert [each.name for each in chain.inputs] == ["x", "twos", "one"]
    assert repr(chain.op.function) == "cast, mul and add"  # type: ignore[attr-defined]


def test_dearer_loop_is_left() -> None:
    """Kernels of an instruction set may take less for each of them."""
    before = _cast_chain()
    assert _fused(before, lambda each: 64 if isinstance(each.op, Custom) else 16) is before


def test_only_what_pays_is_part() -> None:
    """An operator that has a kernel of its own stays outside of the loop of the others."""

    def cost(each: Node) -> int:
        if isinstance(each.op, CastTo):
            return 16
        return (1 << 20) + 100 * (each.inputs[0].dtype is DType.UINT8)

    after = _fused(_cast_chain(), cost)
    assert _ops(after) == [CastTo, Custom]


def test_value_that_is_read_twice_is_one() -> None:
    """All who read it are part of the loop."""
    x, a, b, y = map(_floats, "xaby")
    nodes = [node(Square(), [x], a), node(Abs(), [a], b), node(Mul(), [a, b], y)]
    assert _ops(_fused(graph(nodes, [x], [y]))) == [Custom]
    z = _floats("z")
    outside = [*nodes, node(Sub(), [a, x], z)]
    assert _ops(_fused(graph(outside, [x], [y, z]))) == [Square, Custom, Sub]


def test_output_between_stays() -> None:
    """Whoever calls the model sees it."""
    x, a, y = map(_floats, "xay")
    before = graph([node(Square(), [x], a), node(Abs(), [a], y)], [x], [a, y])
    assert _fused(before) is before


def test_condition_chooses() -> None:
    """What is chosen need not be a value that is there anyway."""
    x, small, more, y = (
        tensor("x", SHAPE, DType.INT32), tensor("small", SHAPE, DType.BOOL),
        tensor("more", SHAPE, DType.INT32), tensor("y", SHAPE, DType.INT32),
    )  # fmt: skip
    number = constant("number", np.array(40, np.int32))
    nodes = [
        node(Less(), [x, number], small), node(Add(), [x, number], more),
        node(Select(), [small, more, x], y),
    ]  # fmt: skip
    assert _ops(_fused(graph(nodes, [x], [y]))) == [Custom]


def test_integers_of_floats_end_a_chain() -> None:
    """A function that makes them rounds sums of products in another way."""
    x, w, a, b = map(_floats, "xwab")
    y = tensor("y", SHAPE, DType.INT8, quant(0.5, 3))
    nodes = [node(Mul(), [x, w], a), node(Add(), [a, x], b), node(Quantize(), [b], y)]
    assert _ops(_fused(graph(nodes, [x, w], [y]))) == [Custom, Quantize]


def _of_other_shape() -> list[Node]:
    x, y = _floats("x"), _floats("y")
    small, a = _floats("small", (1, 3, 1)), _floats("a", (1, 3, 1))
    return [node(Square(), [small], a), node(Mul(), [x, a], y)]


def _of_channels() -> list[Node]:
    x = tensor("x", SHAPE, DType.INT8, per_channel((0.1, 0.2, 0.3, 0.4), 2))
    a, y = _floats("a"), _floats("y")
    return [node(Dequantize(), [x], a), node(Square(), [a], y)]


def _in_a_loop() -> list[Node]:
    x, count, start, a, after, y, last = (_floats(n) for n in ("x", "n", "s", "a", "t", "y", "l"))
    return [
        node(Square(), [x], start), node(Repeat(2), [start], a), node(Abs(), [a], after),
        node(Assign(), [a, after], y), node(EndRepeat(), [a, y], last),
        node(Square(), [last], count),
    ]  # fmt: skip


@pytest.mark.parametrize("nodes", [_of_other_shape(), _of_channels(), _in_a_loop()])
def test_what_is_no_chain_stays(nodes: list[Node]) -> None:
    """Other shapes, scales by channel, and values that have a place in a loop."""
    made = {each for one in nodes for each in one.outputs}
    inputs = dict.fromkeys(t for one in nodes for t in one.activations if t not in made)
    before = graph(nodes, list(inputs), [nodes[-1].output])
    assert FuseChains(_dear)(before) is before


def test_registers_hold_the_factors_of_three() -> None:
    """A longer loop of rescaled integers would load what it computes with in each turn."""
    values = [tensor(f"v{n}", SHAPE, DType.INT16, quant(0.02 + n / 100)) for n in range(6)]
    nodes = [node(Add(), [values[n], values[0]], values[n + 1]) for n in range(5)]
    assert _ops(_fused(graph(nodes, values[:1], values[5:]))) == [Custom, Custom]


def test_sum_of_several_lives_longer() -> None:
    """Where memory counts, one of them may be over before another is there."""
    x, w, v, a, b, y = map(_floats, "xwvaby")
    nodes = [node(Add(), [x, w], a), node(Abs(), [a], b), node(Mul(), [b, v], y)]
    before = graph(nodes, [x, w, v], [y])
    assert _ops(_fused(before)) == [Custom]
    assert _ops(FuseChains(_dear, counts_memory=True)(before)) == [Add, Custom]
    once = [node(Abs(), [x], a), node(Square(), [a], b), node(Mul(), [b, v], y)]
    after = FuseChains(_dear, counts_memory=True)(graph(once, [x, v], [y]))
    assert _ops(after) == [Custom]


def test_smaller_value_between_is_kept() -> None:
    """Where memory counts, bytes that stand for words free these."""
    x, narrow, y = tensor("x", SHAPE, DType.INT32), tensor("a", SHAPE, DType.UINT8), _floats("y")
    nodes = [node(CastTo(), [x], narrow), node(CastTo(), [narrow], y)]
    before = graph(nodes, [x], [y])
    assert _ops(_fused(before)) == [Custom]
    assert FuseChains(_dear, counts_memory=True)(before) is before


def test_operators_apart_stay_apart() -> None:
    """What a chain reads is there before its first operator: nothing lives longer."""
    x, w, a, b, y = map(_floats, "xwaby")
    e = _floats("e")
    nodes = [
        node(Square(), [x], a), node(Elu(), [w], e), node(Abs(), [e], b), node(Mul(), [a, b], y)
    ]  # fmt: skip
    assert _ops(_fused(graph(nodes, [x, w], [y]))) == [Custom]
    apart = [nodes[0], *nodes[1:3], node(Mul(), [a, x], y), node(Sub(), [b, x], _floats("z"))]
    after = _fused(graph(apart, [x, w], [y, apart[-1].output]))
    assert _ops(after) == [Square, Custom, Mul, Sub]


_BINARY = (Add(), Sub(), Mul(), Maximum(), SquaredDifference())
_UNARY = (Abs(), Square(), Elu())


def _random(steps: list[tuple[int, int, int]], constants: int) -> Graph:
    """Return a graph of elementwise operators that read what is there."""
    values = [_floats("x0"), _floats("x1")]
    nodes: list[Node] = []
    for number, (kind, first, second) in enumerate(steps):
        y, a = _floats(f"y{number}"), values[first % len(values)]
        other = values[second % len(values)]
        if (number + constants) % 3 == 0:
            other = _constant(f"c{number}", (SHAPE, SHAPE[1:], (1,))[second % 3])
        op: Operator = (*_BINARY, *_UNARY)[kind]
        nodes.append(node(op, [a] if kind >= len(_BINARY) else [a, other], y))
        values.append(y)
    return graph(nodes, values[:2], [values[-1]])


_STEPS = st.tuples(st.integers(0, 7), st.integers(0, 9), st.integers(0, 9))


@settings(max_examples=60, deadline=None)
@given(st.lists(_STEPS, min_size=1, max_size=10), st.integers(0, 2))
def test_random_chains(steps: list[tuple[int, int, int]], constants: int) -> None:
    """Whoever reads what, the results are the same."""
    _fused(_random(steps, constants))


@pytest.mark.tools
def test_bits_of_c_are_those_of_loops_apart() -> None:
    """At `flash` each operator has a loop; sums of products are rounded where they are there."""
    rng = np.random.default_rng(7)
    for seed in range(3):
        draw = np.random.default_rng(seed)
        drawn = draw.integers(0, 10, (8, 3)).tolist()
        subject = _random([(kind % 8, a + n, b) for n, (kind, a, b) in enumerate(drawn)], seed)
        values = {x.name: rng.normal(size=SHAPE).astype(np.float32) for x in subject.inputs}
        results = []
        for goal in (Optimize.SPEED, Optimize.FLASH):
            config = CompilationConfig(targets="c", module_name="chain", optimize=goal)
            module = IRModule(graph=subject).with_configuration(config)
            results.append(microtir.host.load(microtir.build(module)).run(values))
        for name, value in results[0].items():
            np.testing.assert_array_equal(value, results[1][name])
