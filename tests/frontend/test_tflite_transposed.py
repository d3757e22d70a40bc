"""TRANSPOSE_CONV: where windows begin, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from microtir.operators.common.attributes import Activation
from microtir.operators.common.tflite_schema import BuiltinOperator, Padding
from microtir.operators.common.tflite_schema import TfliteActivation as FileActivation
from microtir.operators.movement.tflite import PackOptions, StridedSliceOptions
from microtir.operators.transposed_convolution.definition import TransposeConv
from microtir.operators.transposed_convolution.tflite import TransposeConvOptions
from microtir.writers.tflite import TfliteBuilder
from tests.frontend.models import Value, ints, model, read, read_node, refusal, zeros

CODE = BuiltinOperator.TRANSPOSE_CONV


def test_attributes_and_order_of_inputs() -> None:
    """The image is the first input; SAME cuts off what a convolution of the output would pad."""
    node = read_node(
        CODE,
        [ints(1, 8, 9, 3), zeros(3, 3, 4, 2), Value((1, 4, 3, 2)), zeros(3)],
        Value((1, 8, 9, 3)),
        TransposeConvOptions(Padding.SAME, 3, 2, FileActivation.RELU),
    )
    assert node.op == TransposeConv((2, 3), (0, 0), Activation.RELU)
    assert [tensor.shape for tensor in node.inputs] == [(1, 4, 3, 2), (3, 3, 4, 2), (3,)]
    (other,) = read(_same((1, 7, 9, 3), 5)).nodes
    assert other.op == TransposeConv((2, 2), (2, 2))


def _same(shape: tuple[int, ...], taps: int) -> bytes:
    inputs = [ints(*shape), zeros(3, taps, taps, 2), Value((1, 4, 5, 2))]
    return model(CODE, inputs, Value(shape), TransposeConvOptions(Padding.SAME, 2, 2))


def test_shape_that_the_model_computes() -> None:
    """A batch of any size is read as 1, through the operators that put the shape together."""
    builder = TfliteBuilder()
    x = builder.tensor("x", (1, 4, 4, 2), np.float32, shape_signature=(-1, 4, 4, 2))
    shape = builder.tensor("shape", (4,), np.int32)
    first = builder.tensor("first", (), np.int32)
    zero, one = (builder.tensor(n, (1,), np.int32, np.array([v])) for n, v in (("a", 0), ("b", 1)))
    eight, three = (builder.tensor(n, (), np.int32, np.array(v)) for n, v in (("c", 8), ("d", 3)))
    whole = builder.tensor("whole", (4,), np.int32)
    weights = builder.tensor("w", (3, 2, 2, 2), np.float32, np.zeros((3, 2, 2, 2), np.float32))
    y = builder.tensor("y", (1, 1, 1, 3), np.float32, shape_signature=(-1, -1, -1, 3))
    builder.operator(BuiltinOperator.SHAPE, [x], [shape])
    slicing = StridedSliceOptions(shrink_axis_mask=1)
    builder.operator(BuiltinOperator.STRIDED_SLICE, [shape, zero, one, one], [first], slicing)
    pack = PackOptions(4, 0)
    builder.operator(BuiltinOperator.PACK, [first, eight, eight, three], [whole], pack)
    builder.operator(CODE, [whole, weights, x], [y], TransposeConvOptions(Padding.VALID, 2, 2))
    (node,) = read(builder.build([x], [y])).nodes
    assert node.output.shape == (1, 8, 8, 3)


def _with_bias(options: bytes, size: tuple[int, int]) -> bytes:
    builder = TfliteBuilder()
    shapes = ((1, 4, 5, 2), (3, 5, 2, 2), (3,), (1, *size, 3))
    x = builder.tensor("x", shapes[0], np.float32)
    w, b = (builder.tensor("w", s, np.float32, np.zeros(s)) for s in shapes[1:3])
    y = builder.tensor("y", shapes[3], np.float32)
    builder.custom_operator("Convolution2DTransposeBias", [x, w, b], [y], options)
    return builder.build([x], [y])


@pytest.mark.parametrize(
    ("padding", "size", "before"), [(1, (8, 14), (1, 0)), (2, (11, 14), (0, 0))]
)
def test_transposed_convolution_of_mediapipe(
    padding: int, size: tuple[int, int], before: tuple[int, int]
) -> None:
    """It has its bias beside, its strides column first, and the least output that there is."""
    options = np.array([padding, 3, 2, 0], np.int32).tobytes()
    (node,) = read(_with_bias(options, size)).nodes
    assert node.op == TransposeConv((2, 3), before)
    assert [tensor.shape for tensor in node.inputs] == [(1, 4, 5, 2), (3, 5, 2, 2), (3,)]


@pytest.mark.parametrize(
    ("options", "text"),
    [(b"\1\0", "2 bytes of options"), (bytes(12), "its padding is 0"), (b"\1\0\0\0" * 3, "shape")],
)
def test_refusals_of_mediapipes(options: bytes, text: str) -> None:
    """Options cut short, a padding that is none, and an output that does not follow."""
    assert text in refusal(_with_bias(options, (9, 9)))


INT16 = Value((1, 4, 4, 2), np.int16, None, (0.5,), (0,))
WEIGHTS = zeros(2, 1, 1, 2, dtype=np.int8, scales=(0.5,))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            model(
                CODE,
                [ints(1, 4, 4, 2), WEIGHTS, INT16, zeros(2, dtype=np.int32)],
                INT16,
                TransposeConvOptions(Padding.SAME, 1, 1),
            ),
            "its types (inputs -> outputs) are int16, int8, int32 -> int16",
        ),
        (
            model(
                CODE,
                [ints(1, 4, 5, 2), WEIGHTS, INT16],
                INT16,
                TransposeConvOptions(Padding.SAME, 1, 1),
            ),
            "its output has the shape (1, 4, 4, 2)\n  expected: (1, 4, 5, 2), by its inputs",
        ),
        (
            model(
                CODE,
                [ints(1, 4, 4, 2), WEIGHTS, INT16],
                INT16,
                TransposeConvOptions(Padding.SAME, 0, 1),
            ),
            "strides: 1 by 0",
        ),
        (
            model(
                CODE,
                [ints(4, 4), WEIGHTS, INT16],
                INT16,
                TransposeConvOptions(Padding.SAME, 1, 1),
            ),
            "its output has the shape (4, 4)",
        ),
    ],
)
def test_refusals(data: bytes, text: str) -> None:
    """What is misread by tflite-micro, and files that contradict themselves."""
    assert text in refusal(data)
