from __future__ import annotations

import numpy as np
import pytest

from microtir.graph.operator import Operator
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, Padding, TfliteType
from microtir.operators.cumulation.definition import Cumsum
from microtir.operators.cumulation.tflite import CumsumOptions
from microtir.operators.pooling.definition import L2Pool2D
from microtir.operators.pooling.tflite import Pool2DOptions
from microtir.operators.reduction.definition import (
    ArgMax,
    ArgMin,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    Reduction,
    Sum,
)
from microtir.operators.reduction.tflite import PlaceOptions, ReducerOptions
from tests.frontend.models import Value, ints, model, read_node, refusal, scalar

Code = BuiltinOperator
SHAPE = (2, 3, 4)
ARG_MAX, ARG_MIN = PlaceOptions(TfliteType.INT32), PlaceOptions(TfliteType.INT32)


@pytest.mark.parametrize(
    ("code", "dtype", "expected"),
    [
        (Code.SUM, np.float32, Sum),
        (Code.REDUCE_MAX, np.int32, ReduceMax),
        (Code.REDUCE_MIN, np.float32, ReduceMin),
        (Code.REDUCE_PROD, np.int64, ReduceProd),
        (Code.REDUCE_ALL, np.bool_, ReduceAll),
        (Code.REDUCE_ANY, np.bool_, ReduceAny),
    ],
)
def test_axes_of_reductions(code: BuiltinOperator, dtype: type, expected: type[Reduction]) -> None:
    """Axes are sorted, non-negative and once each."""
    data, result = Value(SHAPE, dtype), Value((1, 3, 1), dtype)
    node = read_node(code, [data, ints(-1, 0, 2)], result, ReducerOptions(keep_dims=True))
    assert node.op == expected((0, 2), keep_dims=True)
    assert len(node.inputs) == 1


@pytest.mark.parametrize(
    ("code", "options", "result", "expected"),
    [
        (Code.ARG_MAX, ARG_MAX, Value((2, 3), np.int32), ArgMax(2)),
        (Code.ARG_MIN, ARG_MIN, Value((2, 3), np.int64), ArgMin(2)),
        (Code.CUMSUM, CumsumOptions(True, False), Value(SHAPE), Cumsum(2, True, False)),
        (Code.CUMSUM, CumsumOptions(False, True), Value(SHAPE), Cumsum(2, False, True)),
    ],
)
@pytest.mark.parametrize("axis", [scalar(-1), ints(2)])
def test_one_axis(
    code: BuiltinOperator, options: Options, result: Value, expected: Operator, axis: Value
) -> None:
    """A scalar or a list of one; the type of places is that of the output."""
    assert read_node(code, [Value(SHAPE), axis], result, options).op == expected


def test_l2_pool() -> None:
    """It has the options of the other pools."""
    options = Pool2DOptions(Padding.VALID, 2, 1, 2, 3)
    node = read_node(Code.L2_POOL_2D, [Value((1, 4, 4, 2))], Value((1, 2, 2, 2)), options)
    assert node.op == L2Pool2D((3, 2), (1, 2))


@pytest.mark.parametrize(
    ("code", "options", "axis", "result", "text"),
    [
        (Code.SUM, ReducerOptions(), ints(3), (2, 3), "axis 3 of a tensor with 3 dimensions"),
        (Code.REDUCE_MAX, ReducerOptions(), Value((1,), np.int32), (2, 3), "computes the axes"),
        (Code.REDUCE_MIN, ReducerOptions(), ints(0), (2, 3), "its shape is (2, 3)"),
        (Code.ARG_MAX, ARG_MAX, ints(0, 1), (4,), "the axis has 2 numbers"),
        (Code.ARG_MIN, ARG_MIN, ints(-4), (2, 3), "axis -4 of a tensor with 3 dimensions"),
        (
            Code.ARG_MAX,
            ARG_MAX,
            ints(1),
            (2, 4),
            "its types (inputs -> outputs) are float32 -> float32",
        ),
        (Code.CUMSUM, CumsumOptions(), ints(5), SHAPE, "axis 5 of a tensor with 3 dimensions"),
        (
            Code.REDUCE_ALL,
            ReducerOptions(),
            ints(1),
            (2, 4),
            "its types (inputs -> outputs) are float32 -> float32",
        ),
    ],
)
def test_refusals(
    code: BuiltinOperator, options: Options, axis: Value, result: tuple[int, ...], text: str
) -> None:
    """Axes that are not there, or not known, and types that the operators do not take."""
    assert text in refusal(model(code, [Value(SHAPE), axis], Value(result), options))
