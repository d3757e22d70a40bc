from __future__ import annotations

import numpy as np
import pytest

from microtir.operators.common.tflite_schema import BuiltinOperator, Options
from microtir.operators.common.tflite_schema import TfliteActivation as FileActivation
from microtir.operators.movement.definition import (
    Concatenation,
    Pack,
    Pad,
    Reshape,
    Split,
    StridedSlice,
    Transpose,
    Unpack,
)
from microtir.operators.movement.tflite import (
    ConcatenationOptions,
    PackOptions,
    ReshapeOptions,
    SplitOptions,
    SqueezeOptions,
    UnpackOptions,
)
from microtir.writers.tflite import TfliteBuilder
from tests.frontend.models import (
    Value,
    add,
    int8,
    ints,
    model,
    read,
    read_node,
    refusal,
    scalar,
    zeros,
)

Code = BuiltinOperator


def pairs(*rows: tuple[int, int]) -> Value:
    """Paddings as PAD stores them."""
    return Value((len(rows), 2), np.int32, np.array(rows).reshape(-1, 2))


def test_pad_is_with_the_zero_point() -> None:
    """The real number 0 of a quantised tensor is its zero point."""
    node = read_node(Code.PAD, [int8(2, 3), pairs((1, 2), (0, 4))], int8(5, 7))
    assert node.op == Pad((1, 0), (2, 4), 3.0)
    assert len(node.inputs) == 1


def test_padv2_has_a_value() -> None:
    """The third input of PADV2 is the value as stored."""
    value = Value((1,), np.int8, np.array([-7]), (0.5,), (3,))
    node = read_node(Code.PADV2, [int8(2), pairs((1, 0)), value], int8(3))
    assert node.op == Pad((1,), (0,), -7.0)
    lowest = scalar(-np.inf, np.float32)
    node = read_node(Code.PADV2, [Value((2,)), pairs((1, 0)), lowest], Value((3,)))
    assert node.op == Pad((1,), (0,), -np.inf)


def test_concatenation_axis_is_counted_from_the_front() -> None:
    """A negative axis is normalised; all inputs stay, in order."""
    inputs = [Value((2, 3, 1)), zeros(2, 3, 4), Value((2, 3, 2))]
    node = read_node(Code.CONCATENATION, inputs, Value((2, 3, 7)), ConcatenationOptions(-1))
    assert node.op == Concatenation(2)
    assert [tensor.name for tensor in node.inputs] == ["x0", "x1", "x2"]


def test_split_keeps_the_data_only() -> None:
    """The axis, the first input of SPLIT, becomes an attribute."""
    parts = [Value((2, 2)), Value((2, 2)), Value((2, 2))]
    node = read_node(Code.SPLIT, [scalar(-1), Value((2, 6))], parts, SplitOptions(3))
    assert node.op == Split(1)
    assert [tensor.name for tensor in node.inputs] == ["x1"]
    assert [tensor.name for tensor in node.outputs] == ["y0", "y1", "y2"]


def test_padv2_may_have_a_value_that_the_model_computes() -> None:
    """A value that is no constant stays an input; so does one that no float holds."""
    for value in (Value(()), scalar(2**60 + 1, np.int64)):
        data = Value((2,), value.dtype)
        result = Value((3,), value.dtype)
        node = read_node(Code.PADV2, [data, pairs((1, 0)), value], result)
        assert node.op == Pad((1,), (0,))
        assert [tensor.name for tensor in node.inputs] == ["x0", "x2"]


def test_split_v_resolves_the_rest() -> None:
    """Sizes and axis become attributes; a -1 is what the other parts leave."""
    parts = [Value((2, 1)), Value((2, 3)), Value((2, 2))]
    inputs = [Value((2, 6)), ints(1, -1, 2), scalar(-1)]
    node = read_node(Code.SPLIT_V, inputs, parts, SplitOptions(3))
    assert node.op == Split(1, (1, 3, 2))
    assert [tensor.name for tensor in node.inputs] == ["x0"]


def test_pack_and_unpack() -> None:
    """A negative axis counts from the end of the tensor that has it."""
    parts = [Value((2, 3)), Value((2, 3))]
    assert read_node(Code.PACK, parts, Value((2, 3, 2)), PackOptions(2, -1)).op == Pack(2)
    node = read_node(Code.UNPACK, [Value((3, 2))], [Value((3,)), Value((3,))], UnpackOptions(2, -1))
    assert node.op == Unpack(1)
    assert [tensor.name for tensor in node.outputs] == ["y0", "y1"]


def test_reverse_is_a_slice() -> None:
    """REVERSE_V2 takes all elements, backwards along its axes."""
    inputs = [Value((2, 3, 1)), ints(-2, 2)]
    node = read_node(Code.REVERSE_V2, inputs, Value((2, 3, 1)))
    assert node.op == StridedSlice((0, 2, 0), (1, -1, 1), (2, 3, 1))


def test_transpose() -> None:
    """The permutation is a constant input, in 32 or 64 bits."""
    for dtype in (np.int32, np.int64):
        permutation = ints(2, 0, -2, dtype=dtype)
        node = read_node(Code.TRANSPOSE, [Value((2, 3, 4)), permutation], Value((4, 2, 3)))
        assert node.op == Transpose((2, 0, 1))


@pytest.mark.parametrize(
    ("code", "inputs", "options", "shape"),
    [
        (Code.RESHAPE, [ints(3, -1)], ReshapeOptions(), (3, 8)),
        (Code.RESHAPE, [ints(3, -1)], ReshapeOptions((24,)), (3, 8)),
        (Code.RESHAPE, [], ReshapeOptions((4, 6)), (4, 6)),
        (Code.SQUEEZE, [], SqueezeOptions(), (2, 12)),
        (Code.SQUEEZE, [], SqueezeOptions((-1,)), (2, 1, 12)),
        (Code.EXPAND_DIMS, [scalar(-1)], Options(), (2, 1, 12, 1, 1)),
        (Code.EXPAND_DIMS, [ints(0)], Options(), (1, 2, 1, 12, 1)),
    ],
)
def test_reshapes(
    code: BuiltinOperator, inputs: list[Value], options: object, shape: tuple[int, ...]
) -> None:
    """RESHAPE, SQUEEZE and EXPAND_DIMS become one operator, the shape being the output's."""
    node = read_node(code, [Value((2, 1, 12, 1)), *inputs], Value(shape), options)  # type: ignore[arg-type]
    assert node.op == Reshape()
    assert len(node.inputs) == 1
    assert node.output.shape == shape


def test_scalar_shapes() -> None:
    """An empty shape and the (0,) of old converters both make a scalar."""
    for shape in (ints(), ints(0)):
        node = read_node(Code.RESHAPE, [Value((1,)), shape], Value(()), ReshapeOptions())
        assert node.output.shape == ()


def test_computed_shape_and_what_computes_it_go() -> None:
    """Operators that only compute the shape of a RESHAPE from the batch size leave no node."""
    builder = TfliteBuilder()
    data = add(builder, Value((1, 4, 4, 2), signature=(-1, 4, 4, 2)), "data")
    shape = add(builder, Value((2,), np.int32), "shape")
    result = add(builder, Value((1, 32), signature=(-1, 32)), "result")
    builder.custom_operator("ShapeOfBatch", [data], [shape])
    builder.operator(Code.RESHAPE, [data, shape], [result], ReshapeOptions())
    (node,) = read(builder.build([data], [result])).nodes
    assert node.op == Reshape()
    assert node.inputs[0].name == "data"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            model(Code.PAD, [Value((2,)), pairs((1, 1), (1, 1))], Value((4,))),
            "the paddings are (1, 1, 1, 1)\n  expected: 1 pairs of numbers",
        ),
        (
            model(Code.PAD, [Value((2,)), pairs((-1, 1))], Value((2,))),
            "paddings (-1,) and (1,) for the shape (2,)",
        ),
        (
            model(
                Code.PADV2,
                [Value((2,)), pairs((1, 1)), scalar(1)],
                Value((4,)),
            ),
            "the value to pad with is int32 of shape ()\n  expected: one float32",
        ),
        (
            model(
                Code.CONCATENATION,
                [Value((2, 3)), Value((3, 3))],
                Value((2, 6)),
                ConcatenationOptions(1),
            ),
            "shapes [(2, 3), (3, 3)] along axis 1\n  expected: shapes that differ in that axis",
        ),
        (
            model(
                Code.CONCATENATION,
                [Value((2, 3)), Value((2, 3))],
                Value((2, 6)),
                ConcatenationOptions(1, FileActivation.RELU),
            ),
            "its fused activation is RELU\n  expected: NONE",
        ),
        (
            model(
                Code.SPLIT, [scalar(0), Value((5,))], [Value((2,)), Value((2,))], SplitOptions(2)
            ),
            "2 parts along axis 0 of the shape (5,)\n  expected: equal parts",
        ),
        (
            model(Code.SPLIT, [scalar(0), Value((4,))], [Value((2,))], SplitOptions(2)),
            "num_splits is 2\n  expected: its 1 outputs",
        ),
        (
            model(
                Code.SPLIT,
                [ints(0, 1), Value((4,))],
                [Value((2,)), Value((2,))],
                SplitOptions(2),
            ),
            "the axis has 2 numbers\n  expected: 1",
        ),
        (
            model(
                Code.SPLIT_V,
                [Value((4,)), ints(3, -1), scalar(0)],
                [Value((3,)), Value((2,))],
                SplitOptions(2),
            ),
            "its shape is (2,)\n  expected: (1,)",
        ),
        (
            model(
                Code.SPLIT_V,
                [Value((4,)), ints(5, -1), scalar(0)],
                [Value((3,)), Value((1,))],
                SplitOptions(2),
            ),
            "parts of (5, -1) along axis 0 of the shape (4,)\n  expected: parts that add up to 4",
        ),
        (
            model(Code.PACK, [Value((2,)), Value((3,))], Value((2, 2)), PackOptions(2)),
            "shapes [(2,), (3,)]\n  expected: equal shapes",
        ),
        (
            model(Code.PACK, [Value((2,))], Value((2, 2)), PackOptions(2)),
            "values_count is 2\n  expected: its 1 inputs",
        ),
        (
            model(Code.UNPACK, [Value((3,))], [Value(()), Value(())], UnpackOptions(2)),
            "2 outputs for axis 0 of the shape (3,)\n  expected: an output for each index",
        ),
        (
            model(Code.TRANSPOSE, [Value((2, 3)), ints(0, 0)], Value((2, 2))),
            "permutation (0, 0) of the shape (2, 3)\n  expected: every axis once",
        ),
        (
            model(Code.RESHAPE, [Value((6,)), ints(-1, -1)], Value((2, 3)), ReshapeOptions()),
            "the new shape is (-1, -1)\n  expected: one -1 at most",
        ),
        (
            model(Code.RESHAPE, [Value((6,)), ints(4, -1)], Value((2, 3)), ReshapeOptions()),
            "its output has the shape (2, 3)\n  expected: (4, 1), by its inputs",
        ),
        (
            model(Code.RESHAPE, [Value((6,)), ints(0, -1)], Value((2, 3)), ReshapeOptions()),
            "its output has the shape (2, 3)\n  expected: (0, 0), by its inputs",
        ),
        (
            model(Code.RESHAPE, [Value((6,)), ints(3, 2)], Value((2, 3)), ReshapeOptions()),
            "its output has the shape (2, 3)\n  expected: (3, 2), by its inputs",
        ),
        (
            model(
                Code.RESHAPE,
                [Value((6,)), ints(*[1] * 65)],
                Value((6,)),
                ReshapeOptions(),
            ),
            "the shape (input 1 'x1') has 65 numbers",
        ),
        (
            model(Code.SQUEEZE, [Value((1, 2))], Value((1,)), SqueezeOptions((1,))),
            "dimensions (1,) of (1, 2) cannot be dropped",
        ),
    ],
)
def test_refusals(data: bytes, text: str) -> None:
    """Each contradiction is named, with what would be legal."""
    assert text in refusal(data)
