"""Moves between conversions of different scales keep real values, as onnxruntime's do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from microtir.frontend import from_onnx
from microtir.rewrite.reference import execute
from microtir.rewrite.verify import verify
from tests.support.onnx_models import (
    Array,
    model_of,
    run_onnxruntime,
    typed,
    with_inferred_outputs,
)

pytestmark = pytest.mark.tools

SHAPE = (1, 4, 4, 4)
Attributes = dict[str, Any]


def _ints(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def _reals(*numbers: float) -> Array:
    return np.array(numbers, np.float32)


_BORDER = _ints(0, 0, 1, 1, 0, 0, 1, 1)
_NEAREST = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}

MOVES: tuple[tuple[str, Attributes, tuple[Array, ...]], ...] = (
    ("MaxPool", {"kernel_shape": [2, 2]}, ()),
    ("GlobalMaxPool", {}, ()),
    ("Reshape", {}, (_ints(1, -1),)),
    ("Flatten", {}, ()),
    ("Transpose", {"perm": [0, 2, 3, 1]}, ()),
    ("Relu", {}, ()),
    ("Clip", {}, (np.float32(0), np.float32(6))),
    ("Clip", {}, (np.float32(-0.37), np.float32(2.2))),
    ("Slice", {}, (_ints(0, 1), _ints(1, 3), _ints(1, 2))),
    ("Gather", {"axis": 1}, (_ints(1, 0),)),
    ("Pad", {}, (_BORDER,)),
    ("Pad", {}, (_BORDER, np.float32(0.4))),
    ("Pad", {"mode": "reflect"}, (_BORDER,)),
    ("DepthToSpace", {"blocksize": 2}, ()),
    ("SpaceToDepth", {"blocksize": 2}, ()),
    ("Tile", {}, (_ints(1, 2, 1, 1),)),
    ("Expand", {}, (_ints(3, 4, 4, 4),)),
    ("Resize", _NEAREST, (_reals(), _reals(1, 1, 2, 2))),
    ("ReduceMax", {}, (_ints(2, 3),)),
    ("Concat", {"axis": 1}, ()),
    ("Max", {}, ()),
    ("Min", {}, ()),
)


def between_conversions(
    operator: str, attributes: Attributes, more: tuple[Array, ...], stored: type[Any]
) -> bytes:
    """Return a model of one operator whose inputs and output have a scale each."""
    count = 2 if operator in ("Concat", "Max", "Min") else 1
    zero = np.iinfo(stored).max // 2
    constants = {f"c{n}": np.asarray(value) for n, value in enumerate(more)}
    for number, name in enumerate([*(f"x{n}" for n in range(count)), "y"]):
        constants[f"{name}_scale"] = np.array((0.05, 0.031, 0.07)[number], np.float32)
        constants[f"{name}_zero"] = np.array(zero - 7 + 9 * number, stored)
    nodes = [
        helper.make_node("DequantizeLinear", [f"x{n}", f"x{n}_scale", f"x{n}_zero"], [f"real{n}"])
        for n in range(count)
    ]
    taken = [*(f"real{n}" for n in range(count)), *(f"c{n}" for n in range(len(more)))]
    nodes.append(helper.make_node(operator, taken, ["made"], **attributes))
    nodes.append(helper.make_node("QuantizeLinear", ["made", "y_scale", "y_zero"], ["y"]))
    inputs = [typed(f"x{n}", SHAPE, stored) for n in range(count)]
    number = helper.np_dtype_to_tensor_dtype(np.dtype(stored))
    output = helper.make_tensor_value_info("y", number, None)
    return with_inferred_outputs(model_of(nodes, inputs, [output], constants))


@pytest.mark.parametrize("stored", [np.int8, np.uint8])
@pytest.mark.parametrize(
    ("operator", "attributes", "more"), MOVES, ids=[f"{n}-{m[0]}" for n, m in enumerate(MOVES)]
)
def test_moves_between_scales_equal_onnxruntime(
    operator: str, attributes: Attributes, more: tuple[Array, ...], stored: type[Any]
) -> None:
    """No stored integer is taken for one of another scale."""
    model = between_conversions(operator, attributes, more, stored)
    graph = from_onnx(model).graph
    assert graph is not None
    verify(graph)
    info, rng = np.iinfo(stored), np.random.default_rng(32)
    inputs = {
        tensor.name: rng.integers(info.min, info.max, SHAPE, stored, endpoint=True)
        for tensor in graph.arguments
    }
    (expected,) = run_onnxruntime(model, inputs)
    (made,) = execute(graph, inputs).values()
    np.testing.assert_array_equal(made, expected)


CHANNEL_MOVES: tuple[tuple[str, Attributes, tuple[Array, ...], int], ...] = (
    ("Transpose", {"perm": [0, 3, 1, 2]}, (), 1),
    ("Reshape", {}, (_ints(8, 3),), 1),
    ("Reshape", {}, (_ints(3, 8),), 0),
    ("Slice", {}, (_ints(0), _ints(1), _ints(1)), 3),
    ("Gather", {"axis": 3}, (_ints(2, 0, 1),), 3),
    ("Pad", {}, (_ints(0, 1, 0, 0, 0, 1, 0, 0),), 3),
    ("Tile", {}, (_ints(1, 2, 1, 1),), 3),
)


@pytest.mark.parametrize("stored", [np.int8, np.uint8])
@pytest.mark.parametrize("ratio", [1.0, 1.5])
@pytest.mark.parametrize(
    ("operator", "attributes", "more", "axis"),
    CHANNEL_MOVES,
    ids=[f"{n}-{m[0]}" for n, m in enumerate(CHANNEL_MOVES)],
)
def test_moves_of_channels_equal_onnxruntime(
    operator: str,
    attributes: Attributes,
    more: tuple[Array, ...],
    axis: int,
    ratio: float,
    stored: type[Any],
) -> None:
    """Scales along an axis are those of real values, wherever a move puts these."""
    shape, scales = (1, 2, 4, 3), np.array((0.01, 0.02, 0.04), np.float32)
    zeros = np.full(3, np.iinfo(stored).max // 2, stored)
    constants = {f"c{n}": np.asarray(value) for n, value in enumerate(more)}
    names = tuple(constants)
    constants |= {"s": scales, "z": zeros, "t": np.float32(ratio) * scales}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["real"], axis=3),
        helper.make_node(operator, ["real", *names], ["moved"], **attributes),
        helper.make_node("QuantizeLinear", ["moved", "t", "z"], ["y"], axis=axis),
    ]
    number = helper.np_dtype_to_tensor_dtype(np.dtype(stored))
    output = helper.make_tensor_value_info("y", number, None)
    model = with_inferred_outputs(model_of(nodes, [typed("x", shape, stored)], [output], constants))
    graph = from_onnx(model).graph
    assert graph is not None
    verify(graph)
    info, rng = np.iinfo(stored), np.random.default_rng(32)
    inputs = {"x": rng.integers(info.min, info.max, shape, stored, endpoint=True)}
    (made,) = execute(graph, inputs).values()
    np.testing.assert_array_equal(made, run_onnxruntime(model, inputs)[0])
