"""Outputs that take the place of an input: distance 0, by brute force and by the checker."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import microtir
from microtir import host
from microtir.config import CompilationConfig, Optimize
from microtir.config.enums import Placement
from microtir.dtype import DType
from microtir.errors import MemoryPlanError
from microtir.memory.checker import check
from microtir.memory.lifetimes import lifetimes
from microtir.memory.place import place, relocate
from microtir.memory.pools import Pool
from microtir.memory.trace import overwrites_unread, trace
from microtir.operators.activations.definition import Relu
from microtir.operators.arithmetic.definition import Add, Mul
from microtir.tir import build
from microtir.tir.ir import (
    Allocate,
    Buffer,
    BufferView,
    Expr,
    For,
    IntImm,
    Invoke,
    Load,
    PrimFunc,
    Scope,
    Seq,
    Stmt,
    Store,
    Var,
)
from tests.support.graphs import graph, node, quant, tensor
from tests.support.small_models import module_of, reference_outputs, sample_inputs

Index = Callable[[Var, Var], tuple[Expr, Expr]]
shapes = st.tuples(st.integers(1, 5), st.integers(1, 5))


def function(
    shape: tuple[int, int], read: Index, write: Index, *, swapped: bool = False, again: bool = False
) -> PrimFunc:
    """Stores x[read(i, j)] + 1 to y[write(i, j)] for all i and j."""
    x, y = (Buffer(name, shape, DType.INT32) for name in "xy")
    i, j = Var("i"), Var("j")
    value = build.add(Load(x, read(i, j)), IntImm(1, DType.INT32))
    body: Stmt = Store(y, write(i, j), value)
    loops = [(i, shape[0]), (j, shape[1])]
    for var, extent in loops if swapped else reversed(loops):
        body = For(var, IntImm(0), IntImm(extent), body)
    if again:
        body = For(Var("twice"), IntImm(0), IntImm(2), body)
    return PrimFunc("layer", (x, y), body)


def same(i: Var, j: Var) -> tuple[Expr, Expr]:
    """The element of the loops."""
    return i, j


def program(layer: PrimFunc) -> tuple[PrimFunc, dict[str, PrimFunc], Buffer, Buffer]:
    """Write x, compute y from it, read y."""
    shape = tuple(d for d in layer.params[0].shape if isinstance(d, int))  # type: ignore[union-attr]
    x, y = (Buffer(name, shape, DType.INT32, Scope.WORKSPACE) for name in "xy")
    out = Buffer("out", shape, DType.INT32)
    copy = function((shape[0], shape[1]), same, same)
    fill = PrimFunc("fill", copy.params, copy.body)
    take = PrimFunc("take", copy.params, copy.body)
    views = {b: BufferView(b, shape, DType.INT32) for b in (x, y, out)}
    source = Buffer("source", shape, DType.INT32)
    calls = (
        Invoke("fill", (BufferView(source, shape, DType.INT32), views[x])),
        Invoke("layer", (views[x], views[y])),
        Invoke("take", (views[y], views[out])),
    )
    main = PrimFunc("main", (source, out), Allocate(x, Allocate(y, Seq(calls))))
    return main, {f.name: f for f in (fill, layer, take)}, x, y


def is_accepted(layer: PrimFunc, x_at: int, y_at: int) -> bool:
    """Whether the checker lets x and y lie at these bytes."""
    main, callees, x, y = program(layer)
    size = max(x_at, y_at) + 4 * 25
    try:
        block = Buffer("workspace", (size,), DType.UINT8, alignment=4)
        placed = relocate(main, [block], {x: (0, x_at), y: (0, y_at)})
        check(main, placed, callees, [size])
    except MemoryPlanError:
        return False
    return True


def is_right(layer: PrimFunc, x_at: int, y_at: int) -> bool:
    """Play the accesses on bytes that remember who wrote them."""
    memory: dict[int, tuple[str, int]] = {}
    elements = [d for d in layer.params[0].shape if isinstance(d, int)]  # type: ignore[union-attr]
    count, written = elements[0] * elements[1], set()
    for byte in range(4 * count):
        memory[x_at + byte] = ("x", byte)
    for is_write, param, first, stop in trace(layer, ()):
        for byte in range(4 * first, 4 * stop):
            if is_write:
                memory[y_at + byte] = ("y", byte)
                written.add(byte)
            elif param == 0 and memory[x_at + byte] != ("x", byte):
                return False
    return all(memory[y_at + byte] == ("y", byte) for byte in written)


@settings(deadline=None, max_examples=60)
@given(shapes, st.integers(-3, 3))
def test_distance_0_is_safe_and_one_less_is_not(shape: tuple[int, int], shift: int) -> None:
    """The planner's distances are 0 one way and all bytes the other; below each it goes wrong.

    A single element is read before anything is written, so that nothing is in its way.
    """
    layer = function(shape, same, same)
    main, callees, x, y = program(layer)
    lives = {life.buffer: life for life in lifetimes(main, callees)}
    size = 4 * shape[0] * shape[1]
    assert lives[y].distance(lives[x]) == (0 if shape != (1, 1) else -size)
    assert lives[x].distance(lives[y]) == (size if shape != (1, 1) else -size)
    at = 400
    assert is_right(layer, at, at) and is_accepted(layer, at, at)
    assert is_right(layer, at + 4, at)
    assert is_accepted(layer, at, at + size)
    if shape != (1, 1):
        assert not is_right(layer, at, at + 4) and not is_accepted(layer, at, at + 4)
        assert not is_accepted(layer, at, at + size - 4)
    assert is_accepted(layer, at + 4 * shift, at) == is_right(layer, at + 4 * shift, at)


OTHERS = {
    "read backward": function((2, 3), lambda i, j: (i, build.sub(2, j)), same),
    "transposed": function((3, 3), lambda i, j: (j, i), same),
    "loops the other way round": function((3, 2), same, same, swapped=True),
    "one place for all": function((3, 2), same, lambda i, _: (i, IntImm(0))),
    "twice": function((3, 2), same, same, again=True),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_orders_have_distances_of_their_own(name: str) -> None:
    """What reads an element after others were written keeps as far apart as it must."""
    layer = OTHERS[name]
    main, callees, x, y = program(layer)
    lives = {life.buffer: life for life in lifetimes(main, callees)}
    for low, high in ((x, y), (y, x)):
        distance = lives[low].distance(lives[high])
        assert distance is not None
        for gap, right in ((distance, True), (distance - 4, False)):
            starts = {low: 400, high: 400 + gap}
            assert is_right(layer, starts[x], starts[y]) is right
            # The reader of y asks for all of it, which the checker does not let pass half written.
            accepted = right and name != "one place for all"
            assert is_accepted(layer, starts[x], starts[y]) is accepted


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(sorted(OTHERS)), st.integers(-8, 8))
def test_the_checker_goes_by_the_accesses(name: str, shift: int) -> None:
    """What it accepts is right, wherever the two lie and whatever the order is."""
    layer = OTHERS[name]
    if is_accepted(layer, 400 + 4 * shift, 400):
        starts, sizes = {0: 400 + 4 * shift, 1: 400}, {0: 4, 1: 4}
        assert not overwrites_unread(trace(layer, ()), starts, sizes)


@pytest.mark.parametrize("placement", [Placement.GREEDY, Placement.EXACT, Placement.OPTIMAL])
def test_a_chain_of_elementwise_layers_takes_one_buffer(placement: Placement) -> None:
    """Every placement finds it, and the bound is met."""
    main, callees, *_ = program(function((4, 5), same, same))
    _, plan = place(main, callees, [Pool(alignment=4)], placement)
    assert (plan.workspace_size, plan.lower_bound) == (80, 80)


def test_models_compute_the_same_in_place() -> None:
    """Activations that take each other's place: one buffer for three, and equal results."""
    type_ = quant(0.1, 3)
    x, z, a, b, c, y = (tensor(n, (1, 4, 3, 2), DType.INT8, type_) for n in "xzabcy")
    model = graph(
        [
            node(Relu(), (x,), a),
            node(Mul(), (a, z), b),
            node(Add(), (b, z), c),
            node(Relu(), (c,), y),
        ],
        [x, z],
        [y],
    )
    inputs = sample_inputs(model)
    config = CompilationConfig(targets="c", optimize=Optimize.SPEED)
    artifact = microtir.build(module_of(model), config)
    memory = artifact.metadata.memory
    assert memory is not None and memory.workspace_size == 24
    expected = reference_outputs(model, inputs)["y"]
    assert (host.load(artifact, opt_level=3).run(inputs)["y"] == expected).all()
