from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias, get_type_hints

import numpy as np
import numpy.typing as npt
import pytest

from microtir.errors import UsageError
from microtir.frontend.tflite_operators import OPTIONS_OF
from microtir.operators.activations.tflite import LeakyReluOptions
from microtir.operators.arithmetic.tflite import AddOptions
from microtir.operators.common.tflite_schema import (
    BuiltinOperator,
    Options,
    Padding,
    TfliteActivation,
    TfliteType,
)
from microtir.operators.conversion.tflite import CastOptions
from microtir.operators.convolution.tflite import Conv2DOptions, DepthwiseConv2DOptions
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.operators.movement.tflite import (
    ConcatenationOptions,
    ReshapeOptions,
    SplitOptions,
    SqueezeOptions,
    StridedSliceOptions,
)
from microtir.operators.pooling.tflite import Pool2DOptions
from microtir.operators.reduction.tflite import ReducerOptions
from microtir.operators.resize.tflite import ResizeBilinearOptions, ResizeNearestNeighborOptions
from microtir.operators.softmax.tflite import SoftmaxOptions
from microtir.writers.tflite import OPTIONAL_INPUT, TfliteBuilder
from tests.support.tflm import run_tflm

Array: TypeAlias = npt.NDArray[Any]
Op = BuiltinOperator


@dataclass(frozen=True)
class Case:
    """A float model of one operator: constants follow the data inputs."""

    code: BuiltinOperator
    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]
    constants: tuple[Array, ...] = ()
    options: Options | None = None
    constants_first: bool = False


def _ramp(*shape: int) -> Array:
    size = int(np.prod(shape))
    return (((np.arange(size) * 7) % 23 - 11) / 4).reshape(shape).astype(np.float32)


def _ints(*values: int) -> Array:
    return np.array(values, dtype=np.int32)


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _correlate(x: Array, weights: Array, stride: int, dilation: int) -> Array:
    """VALID convolution of one NHWC image with OHWI weights."""
    count, high, wide, _ = weights.shape
    rows = (x.shape[1] - (high - 1) * dilation - 1) // stride + 1
    columns = (x.shape[2] - (wide - 1) * dilation - 1) // stride + 1
    result = np.zeros((1, rows, columns, count), np.float32)
    for row in range(high):
        for column in range(wide):
            y, z = row * dilation, column * dilation
            window = x[:, y : y + rows * stride : stride, z : z + columns * stride : stride]
            result += window @ weights[:, row, column].T
    return result


X = _ramp(1, 6, 6, 2)
Y = _ramp(1, 6, 6, 2)[:, ::-1].copy()
W = _ramp(3, 3, 2, 2)
DW = _ramp(1, 3, 3, 4)
B3 = np.array([0.5, -1, 2], np.float32)
# A depth multiplier of two: output channel c reads input channel c // 2.
DW_AS_CONV = np.stack([DW[0, :, :, c, None] * (np.arange(2) == c // 2) for c in range(4)])
QUARTERS = X.reshape(1, 3, 2, 3, 2, 2)

CASES = {
    "conv_2d": Case(
        Op.CONV_2D,
        (X,),
        (np.maximum(_correlate(X, W, 2, 1) + B3, 0),),
        (W, B3),
        Conv2DOptions(Padding.VALID, stride_w=2, stride_h=2, activation=TfliteActivation.RELU),
    ),
    "conv_2d_dilated": Case(
        Op.CONV_2D,
        (X,),
        (_correlate(X, W, 1, 2) + B3,),
        (W, B3),
        Conv2DOptions(Padding.VALID, dilation_w=2, dilation_h=2),
    ),
    "depthwise_conv_2d": Case(
        Op.DEPTHWISE_CONV_2D,
        (X,),
        (_correlate(X, DW_AS_CONV, 1, 1),),
        (DW, np.zeros(4, np.float32)),
        DepthwiseConv2DOptions(Padding.VALID, depth_multiplier=2),
    ),
    "fully_connected": Case(
        Op.FULLY_CONNECTED,
        (_ramp(2, 5),),
        (np.clip(_ramp(2, 5) @ _ramp(3, 5).T + B3, 0, 6),),
        (_ramp(3, 5), B3),
        FullyConnectedOptions(TfliteActivation.RELU6),
    ),
    "average_pool_2d": Case(
        Op.AVERAGE_POOL_2D,
        (X,),
        (QUARTERS.mean(axis=(2, 4)),),
        options=Pool2DOptions(Padding.VALID, 2, 2, 2, 2),
    ),
    "max_pool_2d": Case(
        Op.MAX_POOL_2D,
        (X,),
        (QUARTERS.max(axis=(2, 4)),),
        options=Pool2DOptions(Padding.SAME, stride_w=2, stride_h=2, filter_w=2, filter_h=2),
    ),
    "mean": Case(
        Op.MEAN,
        (X,),
        (X.mean(axis=(1, 2), keepdims=True),),
        (_ints(1, 2),),
        ReducerOptions(keep_dims=True),
    ),
    "add": Case(Op.ADD, (X, Y), (np.maximum(X + Y, 0),), options=AddOptions(TfliteActivation.RELU)),
    "sub": Case(Op.SUB, (X, Y), (X - Y,)),
    "mul": Case(Op.MUL, (X, Y), (X * Y,)),
    "minimum": Case(Op.MINIMUM, (X, Y), (np.minimum(X, Y),)),
    "maximum": Case(Op.MAXIMUM, (X, Y), (np.maximum(X, Y),)),
    "relu": Case(Op.RELU, (X,), (np.maximum(X, 0),)),
    "relu6": Case(Op.RELU6, (X * 4,), (np.clip(X * 4, 0, 6),)),
    "leaky_relu": Case(
        Op.LEAKY_RELU, (X,), (np.where(X > 0, X, X / 8),), options=LeakyReluOptions(0.125)
    ),
    "hard_swish": Case(Op.HARD_SWISH, (X,), (X * np.clip(X + 3, 0, 6) / 6,)),
    "logistic": Case(Op.LOGISTIC, (X,), (1 / (1 + np.exp(-X)),)),
    "tanh": Case(Op.TANH, (X,), (np.tanh(X),)),
    "softmax": Case(
        Op.SOFTMAX, (_ramp(2, 5),), (_softmax(_ramp(2, 5) * 0.5),), options=SoftmaxOptions(0.5)
    ),
    "log_softmax": Case(Op.LOG_SOFTMAX, (_ramp(2, 5),), (np.log(_softmax(_ramp(2, 5))),)),
    "pad": Case(
        Op.PAD,
        (X,),
        (np.pad(X, ((0, 0), (1, 2), (0, 1), (0, 0))),),
        (np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32),),
    ),
    "padv2": Case(
        Op.PADV2,
        (X,),
        (np.pad(X, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=1.5),),
        (np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32), np.array([1.5], np.float32)),
    ),
    "concatenation": Case(
        Op.CONCATENATION,
        (X, Y),
        (np.concatenate([X, Y], axis=3),),
        options=ConcatenationOptions(axis=3),
    ),
    "reshape": Case(
        Op.RESHAPE, (X,), (X.reshape(3, 24),), (_ints(3, 24),), ReshapeOptions((3, 24))
    ),
    "squeeze": Case(
        Op.SQUEEZE, (_ramp(1, 4, 1, 3),), (_ramp(4, 1, 3),), options=SqueezeOptions((0,))
    ),
    "expand_dims": Case(Op.EXPAND_DIMS, (_ramp(4, 3),), (_ramp(4, 1, 3),), (_ints(1),)),
    "transpose": Case(Op.TRANSPOSE, (X,), (X.transpose(0, 2, 3, 1),), (_ints(0, 2, 3, 1),)),
    "split": Case(
        Op.SPLIT,
        (X,),
        (X[:, :3], X[:, 3:]),
        (_ints(1),),
        SplitOptions(2),
        constants_first=True,
    ),
    "strided_slice": Case(
        Op.STRIDED_SLICE,
        (X,),
        (X[0, 1:, 4:0:-2, :],),
        (_ints(0, 1, 4, 0), _ints(1, 6, 0, 9), _ints(1, 1, -2, 1)),
        StridedSliceOptions(begin_mask=8, end_mask=8, shrink_axis_mask=1),
    ),
    "slice": Case(Op.SLICE, (X,), (X[:, 1:4, 2:],), (_ints(0, 1, 2, 0), _ints(1, 3, -1, 2))),
    "resize_nearest_neighbor": Case(
        Op.RESIZE_NEAREST_NEIGHBOR,
        (X,),
        (X.repeat(2, axis=1).repeat(3, axis=2),),
        (_ints(12, 18),),
        ResizeNearestNeighborOptions(half_pixel_centers=True),
    ),
    "resize_bilinear": Case(
        Op.RESIZE_BILINEAR,
        (_ramp(1, 2, 2, 1),),
        (
            np.array(
                [[a + (b - a) * t for t in (0, 0.5, 1)] for a, b in _ramp(2, 2)], np.float32
            ).reshape(1, 2, 3, 1),
        ),
        (_ints(2, 3),),
        ResizeBilinearOptions(align_corners=True),
    ),
    "cast": Case(
        Op.CAST,
        (_ints(-3, 0, 9),),
        (np.array([-3, 0, 9], np.float32),),
        options=CastOptions(TfliteType.INT32, TfliteType.FLOAT32),
    ),
}


def _model(case: Case) -> bytes:
    builder = TfliteBuilder()
    data = [builder.tensor(f"x{i}", x.shape, x.dtype) for i, x in enumerate(case.inputs)]
    constants = [builder.tensor(f"c{i}", c.shape, c.dtype, c) for i, c in enumerate(case.constants)]
    outputs = [
        builder.tensor(f"y{i}", y.shape, case.inputs[0].dtype if y.dtype.kind == "i" else "f4")
        for i, y in enumerate(case.expected)
    ]
    operands = [*constants, *data] if case.constants_first else [*data, *constants]
    builder.operator(case.code, operands, outputs, case.options)
    return builder.build(data, outputs)


@pytest.mark.tools
@pytest.mark.parametrize("name", CASES)
def test_float_operator_runs(name: str) -> None:
    """tflite-micro reads the written operator and its options as they were meant."""
    case = CASES[name]
    results = run_tflm(_model(case), *case.inputs, outputs=len(case.expected))
    for result, expected in zip(results, case.expected, strict=True):
        assert result.shape == expected.shape
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.tools
def test_quantize_requantize_dequantize_run() -> None:
    """QUANTIZE from float, QUANTIZE between scales and DEQUANTIZE keep values on the grid."""
    builder = TfliteBuilder()
    x = builder.tensor("x", (4,), np.float32)
    fine = builder.tensor("fine", (4,), np.int8, scales=0.5, zero_points=3)
    coarse = builder.tensor("coarse", (4,), np.int8, scales=1.0, zero_points=-5)
    y = builder.tensor("y", (4,), np.float32)
    builder.operator(Op.QUANTIZE, [x], [fine])
    builder.operator(Op.QUANTIZE, [fine], [coarse])
    builder.operator(Op.DEQUANTIZE, [coarse], [y])
    values = np.array([-8.0, 0.0, 2.0, 31.0], np.float32)
    (result,) = run_tflm(builder.build([x], [y]), values)
    np.testing.assert_array_equal(result, values)


@pytest.mark.tools
def test_per_channel_int8_convolution_runs() -> None:
    """The scale of each output channel is applied to its own channel."""
    builder = TfliteBuilder()
    scales = np.array([0.5, 0.25, 0.125])
    weights = np.array([2, 4, 8], np.int8).reshape(3, 1, 1, 1)
    x = builder.tensor("x", (1, 2, 2, 1), np.int8, scales=1.0, zero_points=-1)
    w = builder.tensor("w", (3, 1, 1, 1), np.int8, weights, scales, axis=0)
    b = builder.tensor("b", (3,), np.int32, _ints(0, 4, -8), scales, axis=0)
    y = builder.tensor("y", (1, 2, 2, 3), np.int8, scales=1.0, zero_points=2)
    builder.operator(Op.CONV_2D, [x, w, b], [y])
    data = np.array([-1, 4, 9, 20], np.int8).reshape(1, 2, 2, 1)
    (result,) = run_tflm(builder.build([x], [y]), data)
    expected = (data.astype(np.int32) + 1) + _ints(0, 1, -1) + 2
    np.testing.assert_array_equal(result, expected.astype(np.int8))


def _distinct(options: type[Options]) -> Options:
    """An instance in which no field has its default or the schema's."""
    values: dict[str, Any] = {}
    types = get_type_hints(options)
    for number, entry in enumerate(dataclasses.fields(options)):
        kind: Any = types[entry.name]
        if kind is bool:
            values[entry.name] = not entry.default
        elif kind is int:
            values[entry.name] = number + 2
        elif kind is float:
            values[entry.name] = 0.375
        elif kind is str:
            values[entry.name] = f"text {number}"
        elif issubclass(kind if isinstance(kind, type) else tuple, IntEnum):
            values[entry.name] = kind(1)
        else:
            values[entry.name] = (4, 5, 6)
    return options(**values)


_SCHEMA_NAMES = {
    "activation": "fused_activation_function",
    "filter_h": "filter_height",
    "filter_w": "filter_width",
    "dilation_h": "dilation_h_factor",
    "dilation_w": "dilation_w_factor",
    "dilation_d": "dilation_d_factor",
}


@pytest.mark.parametrize("code", list(OPTIONS_OF), ids=lambda code: code.name.lower())
def test_every_option_is_read_back(code: BuiltinOperator) -> None:
    """The schema's own reader finds each field of each option table in its slot."""
    import tflite

    assert getattr(tflite.BuiltinOperator, code.name) == code
    options = _distinct(OPTIONS_OF[code])
    builder = TfliteBuilder()
    x = builder.tensor("x", (1,), np.float32)
    builder.operator(code, [x, x, x], [x], options)
    model = tflite.Model.GetRootAs(builder.build([x], [x]))
    operator = model.Subgraphs(0).Operators(0)
    if not code.table:
        assert operator.BuiltinOptions() is None
        return
    name = code.table_name
    assert operator.BuiltinOptionsType() == getattr(tflite.BuiltinOptions, name)
    table = getattr(tflite, name)()
    table.Init(operator.BuiltinOptions().Bytes, operator.BuiltinOptions().Pos)
    for entry in dataclasses.fields(options):
        schema_name = _SCHEMA_NAMES.get(entry.name, entry.name)
        getter = re.sub("(?:^|_)([a-z])", lambda match: match[1].upper(), schema_name)
        value = getattr(options, entry.name)
        if isinstance(value, str):
            assert getattr(table, getter)().decode() == value, entry.name
        elif isinstance(value, tuple):
            assert getattr(table, f"{getter}AsNumpy")().tolist() == list(value)
        else:
            assert getattr(table, getter)() == value, entry.name


def test_tensors_are_read_back() -> None:
    """Shape, type, data, quantisation and flags of a tensor reach the file."""
    import tflite

    builder = TfliteBuilder("words")
    data = np.arange(-6, 6, dtype=np.int8).reshape(2, 3, 2)
    scales = np.array([0.5, 0.25, 0.125])
    w = builder.tensor("w", (2, 3, 2), np.int8, data, scales, [0, 1, 2], axis=1)
    x = builder.tensor("x", (1, 4), np.float32, shape_signature=(-1, 4), is_variable=True)
    builder.operator(Op.ADD, [x, OPTIONAL_INPUT], [x])
    file = builder.build([x], [x, w])
    model = tflite.Model.GetRootAs(file)
    assert file[4:8] == b"TFL3"
    assert (model.Version(), model.Description()) == (3, b"words")
    graph = model.Subgraphs(0)
    assert (graph.InputsAsNumpy().tolist(), graph.OutputsAsNumpy().tolist()) == ([x], [x, w])
    assert graph.Operators(0).InputsAsNumpy().tolist() == [x, -1]
    tensor = graph.Tensors(w)
    assert (tensor.Name(), tensor.ShapeAsNumpy().tolist()) == (b"w", [2, 3, 2])
    stored = model.Buffers(tensor.Buffer()).DataAsNumpy()
    assert stored.view(np.int8).tolist() == data.ravel().tolist()
    quantization = tensor.Quantization()
    assert quantization.ScaleAsNumpy().tolist() == scales.tolist()
    assert quantization.ZeroPointAsNumpy().tolist() == [0, 1, 2]
    assert quantization.QuantizedDimension() == 1
    other = graph.Tensors(x)
    assert (other.Buffer(), other.IsVariable(), other.Quantization()) == (0, True, None)
    assert other.ShapeSignatureAsNumpy().tolist() == [-1, 4]


@pytest.mark.parametrize("size", range(1, 40, 3))
def test_constants_are_aligned(size: int) -> None:
    """Constants start at multiples of 16 bytes, whatever lies between them."""
    builder = TfliteBuilder()
    first = np.full(size, 0x55, np.int8)
    second = np.full(size + 5, 0x66, np.int8)
    a = builder.tensor("a" * size, first.shape, np.int8, first)
    b = builder.tensor("b", second.shape, np.int8, second)
    file = builder.build([], [a, b])
    assert len(file) % 16 == 0
    assert file.index(first.tobytes()) % 16 == 0
    assert file.index(second.tobytes()) % 16 == 0


def test_same_calls_give_same_bytes() -> None:
    """Writing is a function of the calls."""
    assert _model(CASES["conv_2d"]) == _model(CASES["conv_2d"])


def test_operators_share_operator_codes() -> None:
    """Two uses of an operator in one version share one entry of the table of codes."""
    import tflite

    builder = TfliteBuilder()
    x = builder.tensor("x", (4,), np.float32)
    q = builder.tensor("q", (4,), np.int8, scales=1.0)
    builder.operator(Op.RELU, [x], [x])
    builder.operator(Op.RELU, [q], [q])
    builder.operator(Op.RELU, [x], [x])
    builder.custom_operator("Fancy", [x], [x], b"\x01\x02")
    model = tflite.Model.GetRootAs(builder.build([x], [x]))
    codes = [model.OperatorCodes(i) for i in range(model.OperatorCodesLength())]
    assert [(code.BuiltinCode(), code.Version()) for code in codes] == [(19, 1), (19, 2), (32, 1)]
    assert codes[2].CustomCode() == b"Fancy"
    operators = [model.Subgraphs(0).Operators(i) for i in range(4)]
    assert [operator.OpcodeIndex() for operator in operators] == [0, 1, 0, 2]
    assert operators[3].CustomOptionsAsNumpy().tolist() == [1, 2]


def _tensor(*args: object, **kwargs: Any) -> Callable[[TfliteBuilder], object]:
    return lambda builder: builder.tensor("t", *args, **kwargs)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (_tensor((2,), np.complex64), "type complex64 cannot be stored"),
        (_tensor((2,), np.int8, [1, 2, 3]), r"data has shape \(3,\)"),
        (_tensor((2,), np.int8, [1, 300]), "data does not fit int8"),
        (_tensor((2,), np.int8, [1, 0.5]), "data does not fit int8"),
        (_tensor((2,), np.int8, zero_points=1), "without scales"),
        (_tensor((2,), np.int8, scales=[1.0, 2.0]), "2 scales without an axis"),
        (_tensor((2,), np.int8, scales=[1.0, 2.0], zero_points=[0]), "1 zero points for 2"),
        (_tensor((3,), np.int8, scales=[1.0, 2.0], axis=0), "2 scales along axis 0"),
        (_tensor((3,), np.int8, scales=[1.0], axis=1), "1 scales along axis 1"),
        (lambda builder: builder.operator(Op.RELU, [0], []), "there is no tensor 0"),
        (lambda builder: builder.build([-1], []), "there is no tensor -1"),
        (lambda builder: builder.custom_operator("c", [5], []), "there is no tensor 5"),
        (
            lambda builder: builder.operator(Op.RELU, [], [], SoftmaxOptions()),
            "operator RELU: options are SoftmaxOptions",
        ),
    ],
)
def test_misuse_is_refused(act: Callable[[TfliteBuilder], object], text: str) -> None:
    """What the format cannot hold, or what contradicts itself, is an error that says so."""
    with pytest.raises(UsageError, match=text):
        act(TfliteBuilder())
