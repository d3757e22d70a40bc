"""Operators that repeat or move elements, are given indices or compute shapes, as they are read."""

from __future__ import annotations

import numpy as np
import pytest

from microtir.graph.operator import Operator
from microtir.operators.common.tflite_schema import BuiltinOperator, Options
from microtir.operators.indexing.definition import Gather, ScatterNd
from microtir.operators.indexing.tflite import GatherOptions
from microtir.operators.movement.definition import StridedSlice
from microtir.operators.rearrangement.definition import BatchToSpace, DepthToSpace, SpaceToBatch
from microtir.operators.rearrangement.tflite import BlockOptions
from microtir.operators.repetition.definition import MirrorPad, Tile
from microtir.operators.repetition.tflite import MirrorPadMode, MirrorPadOptions
from microtir.operators.shapes.definition import Range
from microtir.writers.tflite import TfliteBuilder
from tests.frontend.models import Value, int8, ints, model, read, read_node, refusal

Code = BuiltinOperator


def pairs(*rows: tuple[int, int]) -> Value:
    """Paddings or crops."""
    return Value((len(rows), 2), np.int32, np.array(rows))


def indices(*shape: int) -> Value:
    """Indices that the model computes."""
    return Value(shape, np.int32)


@pytest.mark.parametrize(
    ("code", "inputs", "output", "options", "op"),
    [
        (Code.TILE, [Value((2, 3)), ints(1, 2)], Value((2, 6)), None, Tile((1, 2))),
        (Code.BROADCAST_TO, [Value((2, 1)), ints(3, 2, 4)], Value((3, 2, 4)), None,
         Tile((3, 1, 4))),
        (Code.FILL, [ints(3, 2), Value(())], Value((3, 2)), None, Tile((3, 2))),
        (Code.MIRROR_PAD, [Value((3,)), pairs((1, 2))], Value((6,)),
         MirrorPadOptions(MirrorPadMode.SYMMETRIC), MirrorPad((1,), (2,), edge=True)),
        (Code.DEPTH_TO_SPACE, [Value((1, 2, 2, 4))], Value((1, 4, 4, 1)), BlockOptions(2),
         DepthToSpace(2)),
        (Code.SPACE_TO_BATCH_ND, [int8(1, 3, 2), ints(2), pairs((1, 0))], int8(2, 2, 2), None,
         SpaceToBatch((2,), (1,), (0,), 3.0)),
        (Code.BATCH_TO_SPACE_ND, [Value((4, 2, 2, 1)), ints(2, 2), pairs((1, 0), (0, 2))],
         Value((1, 3, 2, 1)), None, BatchToSpace((2, 2), (1, 0), (0, 2))),
        (Code.GATHER, [Value((2, 3)), indices(2, 5)], Value((2, 5)), GatherOptions(-1, -1),
         Gather(1, 1)),
        (Code.SCATTER_ND, [indices(2, 1), Value((2, 3)), ints(4, 3)], Value((4, 3)), None,
         ScatterNd((4, 3))),
        (Code.SLICE, [Value((4, 3)), indices(2), ints(2, -1)], Value((2, 3)), None,
         StridedSlice((0, 0), (1, 1), (2, 3))),
    ],
)  # fmt: skip
def test_attributes(
    code: BuiltinOperator, inputs: list[Value], output: Value, options: Options, op: Operator
) -> None:
    """Shapes, axes, blocks and paddings become attributes; data and indices stay inputs."""
    assert read_node(code, inputs, output, options).op == op


def test_updates_come_before_their_places() -> None:
    """The data of SCATTER_ND and EMBEDDING_LOOKUP, which the file has second, come first."""
    inputs = [indices(2, 1), Value((2, 3)), ints(4, 3)]
    node = read_node(Code.SCATTER_ND, inputs, Value((4, 3)), None)
    assert [tensor.name for tensor in node.inputs] == ["x1", "x0"]
    node = read_node(Code.EMBEDDING_LOOKUP, [indices(2), Value((4, 3))], Value((2, 3)), None)
    assert [tensor.name for tensor in node.inputs] == ["x1", "x0"]


def numbers(*limits: float, shape: tuple[int, ...], dtype: type = np.int32) -> bytes:
    """RANGE of constants, beside an input that is not used."""
    b = TfliteBuilder()
    x, y = b.tensor("x", (1,), np.float32), b.tensor("y", shape, dtype)
    operands = [b.tensor(f"n{i}", (), dtype, np.array(n, dtype)) for i, n in enumerate(limits)]
    b.operator(Code.RANGE, operands, [y])
    return b.build([x], [y])


def test_range_counts_its_numbers() -> None:
    """The limit is not among the numbers; floats are counted in float32."""
    assert read(numbers(5, 0, -2, shape=(3,))).nodes[0].op == Range(3)
    assert read(numbers(0, 0.7, 0.2, shape=(4,), dtype=np.float32)).nodes[0].op == Range(4)
    assert "numbers from 0 to 3 by 0" in refusal(numbers(0, 3, 0, shape=(3,)))
    assert "numbers from 0 to 3 by -1" in refusal(numbers(0, 3, -1, shape=(3,)))
    assert "its shape is (3,)\n  expected: (5,)" in refusal(numbers(0, 9, 2, shape=(3,)))


def test_shapes_that_a_model_computes_are_attributes() -> None:
    """What follows from constants and known shapes is known where a reader asks for it."""
    b = TfliteBuilder()
    x, y = b.tensor("x", (1, 1), np.float32), b.tensor("y", (2, 1), np.float32)
    own, rank, other, turned, whole = (
        b.tensor(name, shape, np.int32)
        for name, shape in (("own", (2,)), ("rank", ()), ("other", (2,)), ("turned", (2,)),
                            ("whole", (2,)))
    )  # fmt: skip
    one, three = (b.tensor(f"n{n}", (), np.int32, np.array(n)) for n in (1, 3))
    axis = b.tensor("axis", (1,), np.int32, np.array([0]))
    b.operator(Code.SHAPE, [x], [own])
    b.operator(Code.RANK, [x], [rank])
    b.operator(Code.RANGE, [one, three, one], [other])
    b.operator(Code.REVERSE_V2, [other, axis], [turned])
    b.operator(Code.BROADCAST_ARGS, [own, turned], [whole])
    b.operator(Code.BROADCAST_TO, [x, whole], [y])
    (node,) = read(b.build([x], [y])).nodes
    assert node.op == Tile((2, 1))


@pytest.mark.parametrize(
    ("code", "inputs", "output", "options", "text"),
    [
        (Code.TILE, [Value((2,)), ints(1, 2)], Value((4,)), None,
         "multiples (1, 2) for data of shape (2,)"),
        (Code.TILE, [Value((2,)), ints(0)], Value((2,)), None, "multiples (0,) of the shape (2,)"),
        (Code.TILE, [Value((2,)), indices(1)], Value((4,)), None,
         "the model computes the multiples (input 1 'x1')"),
        (Code.BROADCAST_TO, [Value((2, 3)), ints(3)], Value((3,)), None,
         "the shape (2, 3) cannot become (3,)\n  expected: extents that are 1 or stay"),
        (Code.FILL, [ints(2), Value((1,))], Value((2,)), None,
         "the value has the shape (1,)\n  expected: a scalar"),
        (Code.MIRROR_PAD, [Value((2,)), pairs((2, 0))], Value((4,)), MirrorPadOptions(),
         "paddings (2,) and (0,) for the shape (2,)\n  expected: less than the extent"),
        (Code.DEPTH_TO_SPACE, [Value((1, 1, 1, 6))], Value((1, 2, 2, 1)), BlockOptions(2),
         "blocks of 2 by 2 from 6 channels"),
        (Code.SPACE_TO_DEPTH, [Value((1, 3, 2, 1))], Value((1, 1, 1, 4)), BlockOptions(2),
         "blocks of 2 by 2 in an image of 3 by 2"),
        (Code.SPACE_TO_DEPTH, [Value((4, 4, 1))], Value((2, 2, 4)), BlockOptions(2),
         "the shape (4, 4, 1)\n  expected: four dimensions"),
        (Code.SPACE_TO_BATCH_ND, [Value((1, 3, 1)), ints(2), pairs((0, 0))], Value((2, 2, 1)),
         None, "blocks (2,) in padded extents of [3]"),
        (Code.BATCH_TO_SPACE_ND, [Value((2, 1, 1)), ints(2), pairs((1, 1))], Value((1, 1, 1)),
         None, "crops (1,) and (1,) leave nothing"),
        (Code.BATCH_TO_SPACE_ND, [Value((2, 1)), ints(2, 2), pairs((0, 0), (0, 0))],
         Value((1, 1)), None, "blocks (2, 2), before (0, 0) and after (0, 0) for the shape (2, 1)"),
        (Code.GATHER, [Value((2, 3)), indices(3)], Value((2, 3)), GatherOptions(1, 1),
         "1 common axes of the shapes (2, 3) and (3,), and axis 1"),
        (Code.GATHER, [Value((2,)), Value((1,))], Value((1,)), GatherOptions(),
         "bool; uint32; uint64; indices int32 or int64"),
        (Code.GATHER_ND, [Value((2,)), indices(3, 2)], Value((3,)), None,
         "2 indices for the shape (2,)\n  expected: 1 to 1"),
        (Code.SCATTER_ND, [indices(2, 1), Value((3,)), ints(4)], Value((4,)), None,
         "updates of the shape (3,)\n  expected: (2,)"),
        (Code.DYNAMIC_UPDATE_SLICE, [Value((2,)), Value((3,)), indices(1)], Value((2,)), None,
         "an update of (3,) for the shape (2,)"),
        (Code.SLICE, [Value((4,)), indices(1), ints(5)], Value((5,)), None,
         "a slice of (5,) of the shape (4,)"),
        (Code.TOPK_V2, [Value((4,)), ints(5)], [Value((5,)), indices(5)], None,
         "the 5 largest of 4 values\n  expected: 1 to 4"),
        (Code.TOPK_V2, [Value((4,)), indices(1)], [Value((4,)), indices(4)], None,
         "the model computes the number of values (input 1 'x1')"),
        (Code.TOPK_V2, [Value((4,)), ints(1)], Value((1,)), None,
         "outputs) are float32 -> float32\n  expected: float32 -> float32, int32;"),
        (Code.TOPK_V2, [Value((4,)), ints(1)], [Value((1,)), indices(1), indices(1)], None,
         "it has 3 outputs\n  expected: 1 to 2"),
        (Code.BROADCAST_ARGS, [indices(2, 1), indices(2)], Value((2,), np.int32), None,
         "shapes (2, 1) and (2,)\n  expected: two lists"),
    ],
)  # fmt: skip
def test_refusals(
    code: BuiltinOperator,
    inputs: list[Value],
    output: Value | list[Value],
    options: Options,
    text: str,
) -> None:
    """Each contradiction is named, with what would be legal."""
    assert text in refusal(model(code, inputs, output, options))
