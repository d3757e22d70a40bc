"""Operators of single elements, of integers and of control flow against onnxruntime."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from microtir import build, host
from microtir.errors import MicrotirError
from microtir.frontend import from_onnx
from microtir.rewrite.reference import execute
from tests.frontend.onnx.test_readers import check, drawn
from tests.support.onnx_models import Array, model_of, typed

pytestmark = pytest.mark.tools

SAMPLE = settings(max_examples=20, deadline=None)


def shape_of(data: st.DataObject, low: int = 1, high: int = 3) -> tuple[int, ...]:
    """Return a shape of small extents."""
    return data.draw(st.lists(st.integers(1, 4), min_size=low, max_size=high).map(tuple), "shape")


def indices_of(data: st.DataObject, shape: tuple[int, ...], extent: int) -> Array:
    """Return indices of an axis, some of which count from its end."""
    rng = np.random.default_rng(data.draw(st.integers(0, 1000), "indices"))
    return rng.integers(-extent, extent, shape)


@given(st.data(), st.booleans())
@SAMPLE
def test_gathered_elements(data: st.DataObject, is_known: bool) -> None:
    """Indices that are known, and that are computed."""
    shape = shape_of(data)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    at = axis % len(shape)
    lines = tuple(n if i != at else data.draw(st.integers(1, 5)) for i, n in enumerate(shape))
    x, indices = drawn(data, *shape), indices_of(data, lines, shape[at])
    node = helper.make_node("GatherElements", ["x", "i"], ["y"], axis=axis)
    if is_known:
        check(model_of([node], [typed("x", x)], ["y"], {"i": indices}), x=x)
    else:
        check(model_of([node], [typed("x", x), typed("i", indices)], ["y"]), x=x, i=indices)


@given(st.data(), st.booleans())
@SAMPLE
def test_gathered_parts(data: st.DataObject, is_known: bool) -> None:
    """Common axes in front, and indices of one axis or several."""
    shape = shape_of(data, 2, 4)
    batch = data.draw(st.integers(0, len(shape) - 1))
    depth = data.draw(st.integers(1, len(shape) - batch))
    outer = (*shape[:batch], *shape_of(data, 0 if batch else 1, 2))
    extents = shape[batch : batch + depth]
    indices = np.stack([indices_of(data, outer, n) for n in extents], axis=-1)
    x = drawn(data, *shape)
    node = helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=batch)
    if is_known:
        check(model_of([node], [typed("x", x)], ["y"], {"i": indices}), x=x)
    else:
        check(model_of([node], [typed("x", x), typed("i", indices)], ["y"]), x=x, i=indices)


@given(st.data(), st.sampled_from(["none", "add", "mul", "max", "min"]), st.booleans())
@SAMPLE
def test_scattered_elements(data: st.DataObject, kind: str, is_known: bool) -> None:
    """Each reduction, with several updates of one place."""
    shape = shape_of(data)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    extent = shape[axis % len(shape)]
    x, updates = drawn(data, *shape), drawn(data, *shape)
    indices = indices_of(data, shape, extent)
    if kind == "none" or not is_known:  # ONNX says nothing of several updates without reduction
        indices = np.argsort(drawn(data, *shape), axis=axis)
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=axis, reduction=kind)
    ports = [typed("x", x), typed("u", updates)]
    if is_known:
        check(model_of([node], ports, ["y"], {"i": indices}, 18), x=x, u=updates)
    elif kind in ("none", "add"):
        model = model_of([node], [*ports, typed("i", indices)], ["y"], opset=18)
        check(model, x=x, u=updates, i=indices)


@given(st.data(), st.sampled_from(["none", "add", "mul", "max", "min"]))
@SAMPLE
def test_scattered_parts(data: st.DataObject, kind: str) -> None:
    """Rows and elements, several of them for one place where they are reduced."""
    shape = shape_of(data, 1, 3)
    depth = data.draw(st.integers(1, len(shape)))
    count = math.prod(shape[:depth])
    rng = np.random.default_rng(data.draw(st.integers(0, 1000), "places"))
    places = rng.choice(count, data.draw(st.integers(1, count)), replace=kind != "none")
    indices = np.stack(np.unravel_index(places, shape[:depth]), axis=-1)
    x, updates = drawn(data, *shape), drawn(data, len(places), *shape[depth:])
    node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction=kind)
    ports = [typed("x", x), typed("u", updates)]
    check(model_of([node], ports, ["y"], {"i": indices}, 18), x=x, u=updates)


@given(st.data())
@SAMPLE
def test_one_hot(data: st.DataObject) -> None:
    """Indices from the end, and outside of the range."""
    shape, depth = shape_of(data), data.draw(st.integers(1, 4))
    axis = data.draw(st.integers(-len(shape) - 1, len(shape)))
    x = indices_of(data, shape, depth) + data.draw(st.integers(-1, 1))
    node = helper.make_node("OneHot", ["x", "depth", "values"], ["y"], axis=axis)
    constants = {"depth": np.array(depth), "values": np.array([-1.5, 2], np.float32)}
    check(model_of([node], [typed("x", x)], ["y"], constants), x=x)


@given(st.data(), st.booleans())
@SAMPLE
def test_reversed_sequences(data: st.DataObject, is_by_batch: bool) -> None:
    """Lengths that the model is given while it runs."""
    steps, count = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    x = drawn(data, *((count, steps, 2) if is_by_batch else (steps, count, 2)))
    rng = np.random.default_rng(data.draw(st.integers(0, 100)))
    lengths = rng.integers(1, steps + 1, count)
    batch, time = (0, 1) if is_by_batch else (1, 0)
    node = helper.make_node("ReverseSequence", ["x", "n"], ["y"], batch_axis=batch, time_axis=time)
    check(model_of([node], [typed("x", x), typed("n", lengths)], ["y"]), x=x, n=lengths)


@given(
    st.data(),
    st.sampled_from(["Add", "Sub", "Mul", "Div", "Less", "Max", "Mod"]),
    st.sampled_from([np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.int32, np.int64]),
)
@settings(max_examples=60, deadline=None)
def test_integers_of_every_width(data: st.DataObject, operator: str, kind: type) -> None:
    """They wrap around, and are no quantised values."""
    numbers = st.integers(int(np.iinfo(kind).min), int(np.iinfo(kind).max))
    least = 1 if operator in ("Div", "Mod") else int(np.iinfo(kind).min)
    a: Array = np.array(data.draw(st.lists(numbers, min_size=3, max_size=3)), kind)
    divisors = st.integers(least, int(np.iinfo(kind).max))
    b: Array = np.array(data.draw(st.lists(divisors, min_size=3, max_size=3)), kind)
    node = helper.make_node(operator, ["a", "b"], ["y"])
    result = typed("y", (3,), np.bool_ if operator == "Less" else kind)
    check(model_of([node], [typed("a", a), typed("b", b)], [result]), a=a, b=b)


def test_slice_of_one_element() -> None:
    """It keeps its axes, which an operator of the graph could leave out."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Slice", ["s", "from", "to"], ["one"]),
        helper.make_node("Cast", ["one"], ["y"], to=TensorProto.FLOAT),
    ]
    ends = {"from": np.array([1]), "to": np.array([2])}
    graph = from_onnx(model_of(nodes, [typed("x", (3, 4))], ["y"], ends)).graph
    assert graph is not None
    assert graph.outputs[0].shape == (1,)


def summing_loop(x: Array, constants: dict[str, Array], condition: str = "go") -> bytes:
    """Return a model that adds x to a state as often as `turns` says, and lists the states."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["state", "x"], ["next"]),
            helper.make_node("Identity", ["next"], ["listed"]),
            helper.make_node("Identity", [condition], ["on"]),
        ],
        "body",
        [typed("turn", (), np.int64), typed("go", (), np.bool_), typed("state", x.shape)],
        [typed("on", (), np.bool_), typed("next", x.shape), typed("listed", x.shape)],
    )
    loop = helper.make_node("Loop", ["turns", "start", "x"], ["y", "list"], body=body)
    results = [typed("y", x.shape), typed("list", ("n", *x.shape))]
    return model_of([loop], [typed("x", x)], results, constants)


@given(st.data())
@SAMPLE
def test_loop(data: st.DataObject) -> None:
    """Few turns are written out, more are a loop of the graph."""
    x, turns = drawn(data, 2, 3), data.draw(st.integers(1, 5))
    check(summing_loop(x, {"turns": np.array(turns), "start": np.array(True)}), x=x)


def test_loop_that_does_not_end() -> None:
    """A loop that only its condition ends, which stays true, is refused."""
    x = np.ones((1, 2), np.float32)
    constants = {"turns": np.array(1 << 40), "start": np.array(True)}
    with pytest.raises(MicrotirError, match="more than"):
        from_onnx(summing_loop(x, constants))


@given(st.data())
@SAMPLE
def test_if(data: st.DataObject) -> None:
    """Both branches are computed, and one of their results is chosen while the model runs."""
    x, flag = drawn(data, 2, 3), np.array(data.draw(st.booleans()))
    branches = {
        name: helper.make_graph([helper.make_node(op, ["x"], ["r"])], name, [], [typed("r", x)])
        for name, op in (("then_branch", "Neg"), ("else_branch", "Abs"))
    }
    node = helper.make_node("If", ["flag"], ["y"], **branches)
    check(model_of([node], [typed("x", x), typed("flag", flag)], ["y"]), x=x, flag=flag)


@given(st.data())
@SAMPLE
def test_scan(data: st.DataObject) -> None:
    """Forwards and backwards along any axis."""
    x = drawn(data, 3, 3)
    axis, ways = data.draw(st.integers(0, 1)), data.draw(st.tuples(*[st.integers(0, 1)] * 2))
    body = helper.make_graph(
        [
            helper.make_node("Add", ["state", "part"], ["next"]),
            helper.make_node("Neg", ["next"], ["listed"]),
        ],
        "body",
        [typed("state", (3,)), typed("part", (3,))],
        [typed("next", (3,)), typed("listed", (3,))],
    )
    node = helper.make_node(
        "Scan", ["start", "x"], ["last", "y"], body=body, num_scan_inputs=1,
        scan_input_axes=[axis], scan_input_directions=[ways[0]], scan_output_axes=[1 - axis],
        scan_output_directions=[ways[1]],
    )  # fmt: skip
    results = [typed("last", (3,)), typed("y", (3, 3))]
    start = {"start": np.array([1, 2, 3], np.float32)}
    check(model_of([node], [typed("x", x)], results, start), x=x)


@given(
    st.data(),
    st.sampled_from(["BitwiseAnd", "BitwiseOr", "BitwiseXor"]),
    st.sampled_from([np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64]),
)
@SAMPLE
def test_bits(data: st.DataObject, operator: str, kind: type) -> None:
    """Of every width, signed and not."""
    numbers = st.integers(int(np.iinfo(kind).min), int(np.iinfo(kind).max))
    a: Array = np.array(data.draw(st.lists(numbers, min_size=3, max_size=3)), kind)
    b: Array = np.array(data.draw(st.lists(numbers, min_size=3, max_size=3)), kind)
    node = helper.make_node(operator, ["a", "b"], ["y"])
    check(model_of([node], [typed("a", a), typed("b", b)], [typed("y", (3,), kind)]), a=a, b=b)


@given(st.data(), st.sampled_from([np.uint8, np.uint32]), st.sampled_from(["LEFT", "RIGHT"]))
@SAMPLE
def test_shifts(data: st.DataObject, kind: type, direction: str) -> None:
    """By fewer bits than the type has; of as many ONNX says more than onnxruntime does."""
    info = np.iinfo(kind)
    a: Array = np.array(data.draw(st.lists(st.integers(0, int(info.max)), min_size=3)), kind)[:3]
    b: Array = np.array([data.draw(st.integers(0, info.bits - 1)) for _ in a], kind)
    node = helper.make_node("BitShift", ["a", "b"], ["y"], direction=direction)
    check(model_of([node], [typed("a", a), typed("b", b)], [typed("y", (3,), kind)]), a=a, b=b)


@pytest.mark.parametrize("kind", [np.int32, np.uint32])
def test_bits_of_floats(kind: type) -> None:
    """All of them, signs of zeros too, there and back; in C as in numpy."""
    x = np.array([0.0, -0.0, 1.0, -1.5, np.inf, 2.0**-149, -3e38], np.float32)
    number = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    there = helper.make_node("BitCast", ["x"], ["bits"], to=number)
    back = helper.make_node("BitCast", ["bits"], ["y"], to=TensorProto.FLOAT)
    model = model_of([there, back], [typed("x", x)], [typed("bits", x.shape, kind), "y"], opset=26)
    module = from_onnx(model)
    assert module.graph is not None
    for results in (execute(module.graph, {"x": x}), host.load(build(module)).run({"x": x})):
        np.testing.assert_array_equal(results["bits"], x.view(kind))
        assert results["y"].tobytes() == x.tobytes()


def test_bits_of_doubles_are_refused() -> None:
    """They are float32 here."""
    node = helper.make_node("BitCast", ["x"], ["y"], to=TensorProto.INT64)
    outputs = [typed("y", (2,), np.int64)]
    model = model_of([node], [typed("x", (2,), np.float64)], outputs, opset=26)
    with pytest.raises(MicrotirError, match="it takes the bits of float32 as int64"):
        from_onnx(model)


def test_few_bits() -> None:
    """Integers of 4 bits are moved and converted, and nothing computes on them as on 8."""
    constants = {"shape": np.array([4])}
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=TensorProto.INT4),
        helper.make_node("Reshape", ["narrow", "shape"], ["moved"]),
    ]
    cast = helper.make_node("Cast", ["moved"], ["y"], to=TensorProto.FLOAT)
    graph = from_onnx(model_of([*nodes, cast], [typed("x", (2, 2))], ["y"], constants)).graph
    assert graph is not None
    (found,) = execute(graph, {"x": np.array([[7, 8], [-8, -9]], np.float32)}).values()
    np.testing.assert_array_equal(found, [7, -8, -8, 7])
    like = helper.make_node("Add", ["moved", "moved"], ["y"])
    with pytest.raises(MicrotirError, match="integers of 4 bits"):
        from_onnx(model_of([*nodes, like], [typed("x", (2, 2))], ["y"], constants))


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        (TensorProto.INT4, -8, 7),
        (TensorProto.UINT4, 0, 15),
        (TensorProto.INT2, -2, 1),
        (TensorProto.UINT2, 0, 3),
    ],
)
def test_numbers_become_few_bits(kind: int, low: int, high: int) -> None:
    """What is quantised to few bits ends where they do, and what is cast keeps its low bits."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale"], ["stored"], output_dtype=kind),
        helper.make_node("Cast", ["stored"], ["quantised"], to=TensorProto.FLOAT),
        helper.make_node("CastLike", ["x", "stored"], ["low_bits"]),
        helper.make_node("Cast", ["low_bits"], ["cast"], to=TensorProto.FLOAT),
    ]
    constants = {"scale": np.array(0.5, np.float32)}
    model = model_of(nodes, [typed("x", (5,))], ["quantised", "cast"], constants)
    graph = from_onnx(model).graph
    assert graph is not None
    x = np.array([-100, -3, 1.25, 3, 100], np.float32)
    quantised, cast = execute(graph, {"x": x}).values()
    np.testing.assert_array_equal(quantised, np.clip([-200, -6, 2, 6, 200], low, high))
    whole = np.array([-100, -3, 1, 3, 100])
    np.testing.assert_array_equal(cast, (whole - low) % (high - low + 1) + low)


@pytest.mark.parametrize("direction", [0, 1])
def test_scan_with_batches(direction: int) -> None:
    """The first Scan had a batch in front of each input, each with a state of its own."""
    body = helper.make_graph(
        [helper.make_node(name, ["state", "part"], [result])
         for name, result in (("Add", "next"), ("Sub", "listed"))],
        "body",
        [typed("state", (3,)), typed("part", (3,))],
        [typed("next", (3,)), typed("listed", (3,))],
    )  # fmt: skip
    node = helper.make_node(
        "Scan", ["", "start", "x"], ["last", "y"], body=body, num_scan_inputs=1,
        directions=[direction],
    )  # fmt: skip
    x = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    start = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    results = [typed("last", (2, 3)), typed("y", (2, 4, 3))]
    inputs = [typed("start", start), typed("x", x)]
    check(model_of([node], inputs, results, opset=8), start=start, x=x)
