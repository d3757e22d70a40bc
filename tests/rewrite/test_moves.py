"""What operators move, as boxes: every element once, and as the meaning says."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from microtir.dtype import DType
from microtir.graph.ir import Array, Node
from microtir.graph.operator import Operator
from microtir.operators.indexing.definition import Gather
from microtir.operators.movement import definition as movement
from microtir.operators.rearrangement.definition import DepthToSpace
from microtir.operators.resize.definition import ResizeNearestNeighbor
from microtir.rewrite.facts.moves import MOVING, Axis, Box, boxes_of
from microtir.rewrite.reference.evaluate import evaluate
from tests.support.graphs import constant, node, quant, tensor
from tests.support.operator_cases import generate

Shape = tuple[int, ...]


def moved(boxes: tuple[Box, ...], layer: Node, inputs: list[Array]) -> list[Array]:
    """The outputs that boxes write; an element that is written twice fails."""
    outputs = [np.zeros(t.type.elements, t.dtype.value) for t in layer.outputs]
    times = [np.zeros(t.type.elements, np.int32) for t in layer.outputs]
    for box in boxes:
        for at in np.ndindex(*(axis.extent for axis in box.axes)):
            target = box.first_target + sum(
                i * axis.target for i, axis in zip(at, box.axes, strict=True)
            )
            source = box.first_source + sum(
                i * axis.source for i, axis in zip(at, box.axes, strict=True)
            )
            run: npt.NDArray[np.generic] | float = box.value
            if box.input is not None:
                run = inputs[box.input].reshape(-1)[source : source + box.run]
            outputs[box.output][target : target + box.run] = run
            times[box.output][target : target + box.run] += 1
    assert all((count == 1).all() for count in times)
    return [y.reshape(t.shape) for y, t in zip(outputs, layer.outputs, strict=True)]


NAMES = (
    "PAD", "PADV2", "CONCATENATION", "PACK", "UNPACK", "SPLIT", "SPLIT_V", "TRANSPOSE", "SLICE",
    "STRIDED_SLICE", "REVERSE_V2", "TILE", "MIRROR_PAD", "DEPTH_TO_SPACE", "SPACE_TO_DEPTH",
    "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND", "RESIZE_NEAREST_NEIGHBOR", "GATHER", "GATHER_ND",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_boxes_are_what_the_meaning_says(name: str) -> None:
    """Of random layers of every operator that moves."""
    rng = np.random.default_rng(0)
    for seed in range(6):
        for layer in generate(name, seed, "int8").graph().nodes:
            boxes = boxes_of(layer, 64) if isinstance(layer.op, MOVING) else None
            if boxes is not None:
                inputs = [_values(rng, t.data, t.shape, t.dtype) for t in layer.inputs]
                for got, want in zip(
                    moved(boxes, layer, inputs), evaluate(layer, inputs), strict=True
                ):
                    np.testing.assert_array_equal(got, want)


def _values(rng: np.random.Generator, data: Array | None, shape: Shape, dtype: DType) -> Array:
    return np.asarray(rng.integers(-99, 99, shape)).astype(dtype.value) if data is None else data


def _layer(op: Operator, shapes: list[Shape], *outputs: Shape) -> Node:
    inputs = [tensor(f"x{n}", s, DType.INT8, quant(0.1)) for n, s in enumerate(shapes)]
    return node(
        op, inputs, [tensor(f"y{n}", s, DType.INT8, quant(0.1)) for n, s in enumerate(outputs)]
    )


FEW = {
    "borders": (
        _layer(movement.Pad((0, 1, 1, 0), (0, 1, 1, 0), 3.0), [(1, 6, 5, 8)], (1, 8, 7, 8)), 5,
    ),
    "channels side by side": (
        _layer(movement.Concatenation(3), [(1, 6, 5, 3), (1, 6, 5, 4)], (1, 6, 5, 7)), 2,
    ),
    "rows of one image behind those of another": (
        _layer(movement.Concatenation(1), [(1, 6, 5, 3), (1, 2, 5, 3)], (1, 8, 5, 3)), 2,
    ),
    "an order of axes": (
        _layer(movement.Transpose((0, 3, 1, 2)), [(1, 6, 5, 3)], (1, 3, 6, 5)), 1,
    ),
    "every element twice": (
        _layer(ResizeNearestNeighbor(False, False), [(1, 6, 5, 3)], (1, 12, 10, 3)), 1,
    ),
    "blocks": (_layer(DepthToSpace(2), [(1, 6, 5, 12)], (1, 12, 10, 3)), 1),
    "parts": (_layer(movement.Split(3), [(1, 6, 5, 9)], (1, 6, 5, 4), (1, 6, 5, 5)), 2),
}  # fmt: skip


@pytest.mark.parametrize("what", FEW)
def test_regular_moves_are_few_boxes(what: str) -> None:
    """One for each part that is moved as a whole, whatever the shape."""
    layer, count = FEW[what]
    boxes = boxes_of(layer, 64)
    assert boxes is not None
    assert len(boxes) == count


def test_loops_are_joined() -> None:
    """Rows that follow each other in source and target are one run."""
    layer = _layer(movement.Concatenation(1), [(1, 6, 5, 3), (1, 2, 5, 3)], (1, 8, 5, 3))
    assert boxes_of(layer, 2) == (Box(0, 0, 0.0, 0, 0, (), 90), Box(0, 1, 0.0, 0, 90, (), 30))


def test_runs_of_neighbours_have_one_loop() -> None:
    """Channels of all pixels stand as far apart from row to row as within a row."""
    layer = _layer(movement.Split(3), [(1, 6, 5, 9)], (1, 6, 5, 4), (1, 6, 5, 5))
    boxes = boxes_of(layer, 2)
    assert boxes is not None
    assert boxes[1] == Box(1, 0, 0.0, 4, 0, (Axis(30, 9, 5),), 5)


def test_what_depends_on_an_activation_has_no_boxes() -> None:
    """Where indices are given while the model runs, and where there are too many parts."""
    x, y = tensor("x", (9, 4), DType.INT8, quant(0.1)), tensor("y", (3, 4), DType.INT8, quant(0.1))
    assert boxes_of(node(Gather(0), [x, tensor("at", (3,), DType.INT32)], [y]), 64) is None
    layer = node(Gather(0), [x, constant("at", np.array([5, 0, 7], np.int32))], [y])
    assert boxes_of(layer, 1) is None
    boxes = boxes_of(layer, 2)
    assert boxes is not None
    assert [(box.first_source, box.first_target) for box in boxes] == [(20, 0), (28, 8)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [-np.inf, np.inf, np.nan, 3e38])
def test_borders_of_any_value(value: float) -> None:
    """What a border holds need not be a number that an integer holds."""
    x, y = tensor("x", (2, 3), DType.FLOAT32), tensor("y", (2, 5), DType.FLOAT32)
    layer = node(movement.Pad((0, 1), (0, 1), value), [x], [y])
    boxes, inputs = boxes_of(layer, 8), [np.arange(6, dtype=np.float32).reshape(2, 3)]
    assert boxes is not None
    np.testing.assert_array_equal(moved(boxes, layer, inputs)[0], evaluate(layer, inputs)[0])
