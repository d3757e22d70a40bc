"""Models of one operator, made in code with random weights, for `python -m benchmarks operators`.

Every function returns a `Make`: given a kind of data and a number of channels it makes the file of
a model, with the units of work in it.  Scales and zero points are unlike unless an operator asks
for equal ones, as exporters write them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

import numpy as np

from microtir.operators.arithmetic.tflite import AddOptions, SubOptions
from microtir.operators.common.tflite_schema import BuiltinOperator, FusedOptions, Options, Padding
from microtir.operators.convolution.tflite import Conv2DOptions, DepthwiseConv2DOptions
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.operators.indexing.tflite import GatherOptions
from microtir.operators.matmul.tflite import BatchMatMulOptions
from microtir.operators.movement.tflite import ConcatenationOptions, ReshapeOptions, SplitOptions
from microtir.operators.pooling.tflite import Pool2DOptions
from microtir.operators.reduction.tflite import ReducerOptions
from microtir.operators.resize.tflite import ResizeBilinearOptions, ResizeNearestNeighborOptions
from microtir.operators.transposed_convolution.tflite import TransposeConvOptions
from microtir.writers.tflite import TfliteBuilder
from scripts.models import recurrent

Shape: TypeAlias = tuple[int, ...]
_Code = BuiltinOperator


class Kind(Enum):
    """Types of data, and of weights where these are not what the data says."""

    INT8 = "int8"
    INT16 = "int16"
    UINT8 = "uint8"
    UINT8_SHIFTED = "uint8, weights around 204"
    FLOAT32 = "float32"

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return np.dtype(self.value.split(",")[0])

    @property
    def is_float(self) -> bool:
        return self is Kind.FLOAT32

    @property
    def is_uint8(self) -> bool:
        return self in (Kind.UINT8, Kind.UINT8_SHIFTED)


@dataclass(frozen=True, slots=True)
class Made:
    """The file of a model, and how many units of work are in it.

    Args:
        file: the model.
        units: of work.
        counted: number of the operator that counts alone; all where none is said.
    """

    file: bytes
    units: int
    counted: int | None = None

    def counts(self, index: int | None) -> bool:
        """Return whether an operator of a number in the file counts; others are not in it."""
        if index is None or index < 0:
            return False
        return self.counted is None or index == self.counted


Make: TypeAlias = Callable[[Kind, int], Made]


@dataclass(frozen=True, slots=True)
class Scale:
    """Quantisation of data of int8; other kinds have one like it, that of int16 can be said."""

    scale: float
    zero_point: int
    of_int16: float | None = None


X, SECOND, Y = Scale(0.05, -3), Scale(0.04, 5), Scale(0.08, -7)
SUMS = Scale(1.0, 3)  # of what sums of products give
UNIT, SIGNED_UNIT = (
    Scale(1 / 256, -128, 2.0**-15),
    Scale(1 / 128, 0),
)  # of what lies in 0 to 1, and -1 to 1
IMAGE = (16, 16)
_FINE = 256  # times the scale of int8 is that of int16


@dataclass(slots=True)
class Model:
    """A model in the making."""

    kind: Kind
    builder: TfliteBuilder = field(default_factory=TfliteBuilder)
    inputs: list[int] = field(default_factory=list)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(34))
    count: int = 0

    def data(self, shape: Shape, scale: Scale = X, kind: Kind | None = None) -> int:
        """Add an activation."""
        kind = kind or self.kind
        if kind.is_float:
            return self.builder.tensor(self._name(), shape, np.float32)
        return self.builder.tensor(self._name(), shape, kind.dtype, None, *_stored(kind, scale))

    def input(self, shape: Shape, scale: Scale = X, kind: Kind | None = None) -> int:
        """Add an input of the model."""
        self.inputs.append(self.data(shape, scale, kind))
        return self.inputs[-1]

    def constant(self, shape: Shape, scale: Scale = SECOND) -> int:
        """Add a constant beside data."""
        if self.kind.is_float:
            floats = self.rng.standard_normal(shape).astype(np.float32)
            return self.builder.tensor(self._name(), shape, np.float32, floats)
        info = np.iinfo(self.kind.value.split(",")[0])
        values = self.rng.integers(info.min, info.max, shape, endpoint=True)
        return self.builder.tensor(
            self._name(), shape, self.kind.dtype, values, *_stored(self.kind, scale)
        )

    def ints(self, *numbers: int | Sequence[int]) -> int:
        """Add a constant of int32."""
        values = np.array(numbers, np.int32)
        return self.builder.tensor(self._name(), values.shape, np.int32, values)

    def weights(self, shape: Shape, axis: int) -> tuple[int, int]:
        """Add weights and a bias: a scale for each channel along the axis, for uint8 one."""
        channels = shape[axis]
        if self.kind.is_float:
            values = self.rng.standard_normal(shape).astype(np.float32)
            bias = self.rng.standard_normal(channels).astype(np.float32)
            return (
                self.builder.tensor(self._name(), shape, np.float32, values),
                self.builder.tensor(self._name(), bias.shape, np.float32, bias),
            )
        zero, scales, dtype = 0, [0.01 * (1 + n % 3) for n in range(channels)], np.int8
        stored = self.rng.integers(-127, 128, shape)
        if self.kind.is_uint8:
            # Around 204 some are so far from it that no int8 holds the difference.
            zero, scales = 204 if self.kind is Kind.UINT8_SHIFTED else 128, [0.01]
            stored, dtype = stored + 128, np.uint8
        zeros, along = [zero] * len(scales), axis if len(scales) > 1 else None
        (data_scale,), _ = _stored(self.kind, X)
        bias_scales = [float(np.float32(data_scale) * np.float32(scale)) for scale in scales]
        wide = np.int64 if self.kind is Kind.INT16 else np.int32
        biases = self.rng.integers(-999, 1000, channels).astype(wide)
        return (
            self.builder.tensor(
                self._name(), shape, dtype, stored.astype(dtype), scales, zeros, along
            ),
            self.builder.tensor(
                self._name(), (channels,), wide, biases, bias_scales, [0] * len(scales),
                None if along is None else 0,
            ),
        )  # fmt: skip

    def add(
        self, code: BuiltinOperator, inputs: Sequence[int], y: int, options: Options | None = None
    ) -> int:
        """Add an operator; return its output."""
        self.builder.operator(code, inputs, [y], options)
        return y

    def file(self, *outputs: int) -> bytes:
        return self.builder.build(self.inputs, outputs)

    def _name(self) -> str:
        self.count += 1
        return f"t{self.count}"


def _stored(kind: Kind, scale: Scale) -> tuple[list[float], list[int]]:
    """Return scales and zero points of a kind."""
    if kind is Kind.INT16:
        return [scale.of_int16 or scale.scale / _FINE], [0]
    return [scale.scale], [scale.zero_point + 128 * kind.is_uint8]


def _pair(size: int | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size


def _extents(
    image: tuple[int, int], window: tuple[int, int], strides: tuple[int, int], padding: Padding
) -> tuple[int, int]:
    """Return rows and columns of what windows give."""
    lost = (0, 0) if padding is Padding.SAME else (window[0] - 1, window[1] - 1)
    rows, columns = (
        (n - gone + s - 1) // s for n, gone, s in zip(image, lost, strides, strict=True)
    )
    return rows, columns


def convolution(
    image: int | tuple[int, int],
    taps: int | tuple[int, int],
    outputs: float = 1,
    *,
    channels: int = 0,
    groups: int = 1,
    stride: int = 1,
    dilation: int | tuple[int, int] = 1,
    padding: Padding = Padding.SAME,
    frames: int = 0,
) -> Make:
    """Return convolutions of an image of `c` channels for each group to `outputs` times as many.

    Args:
        image: rows and columns.
        taps: of the window, high and wide.
        outputs: times the channels of the input.
        channels: of the input, if these are not what is given; `c` is then the outputs'.
        groups: of channels.
        stride: of the windows, along rows and columns.
        dilation: of the taps.
        padding: of the image.
        frames: images that lie along an axis of the model's data and are a batch inside it.
    """

    def make(kind: Kind, c: int) -> Made:
        m = Model(kind)
        given = channels or c * groups
        made = c if channels else int(given * outputs)
        (high, wide), steps = _pair(taps), _pair(dilation)
        window = (high - 1) * steps[0] + 1, (wide - 1) * steps[1] + 1
        result = _extents(_pair(image), window, (stride, stride), padding)
        count = max(frames, 1)
        shape = count, *_pair(image), given
        x = m.input((1, *shape) if frames else shape)
        if frames:
            x = m.add(_Code.RESHAPE, [x], m.data(shape), ReshapeOptions(shape))
        w, bias = m.weights((made, high, wide, given // groups), 0)
        y = m.data((count, *result, made), SUMS)
        options = Conv2DOptions(padding, stride, stride, dilation_w=steps[1], dilation_h=steps[0])
        m.add(_Code.CONV_2D, [x, w, bias], y, options)
        if frames:
            whole = 1, count, *result, made
            y = m.add(_Code.RESHAPE, [y], m.data(whole, SUMS), ReshapeOptions(whole))
        work = count * math.prod(result) * made * high * wide * (given // groups)
        return Made(m.file(y), work)

    return make


def depthwise(
    image: int | tuple[int, int],
    taps: int | tuple[int, int],
    multiplier: int = 1,
    dilation: int | tuple[int, int] = 1,
) -> Make:
    """Return depthwise convolutions of `c` channels that keep the image."""

    def make(kind: Kind, c: int) -> Made:
        m = Model(kind)
        (high, wide), steps = _pair(taps), _pair(dilation)
        x = m.input((1, *_pair(image), c))
        w, bias = m.weights((1, high, wide, c * multiplier), 3)
        y = m.data((1, *_pair(image), c * multiplier), SUMS)
        options = DepthwiseConv2DOptions(
            Padding.SAME, 1, 1, multiplier, dilation_w=steps[1], dilation_h=steps[0]
        )
        m.add(_Code.DEPTHWISE_CONV_2D, [x, w, bias], y, options)
        return Made(m.file(y), math.prod(_pair(image)) * c * multiplier * high * wide)

    return make


def transposed(size: int, taps: int) -> Make:
    """Return transposed convolutions of stride 2 from `c` channels to as many."""

    def make(kind: Kind, c: int) -> Made:
        m = Model(kind)
        result = (1, 2 * size, 2 * size, c)
        w, bias = m.weights((c, taps, taps, c), 0)
        inputs = [m.ints(*result), w, m.input((1, size, size, c)), bias]
        options = TransposeConvOptions(Padding.SAME, 2, 2)
        y = m.add(_Code.TRANSPOSE_CONV, inputs, m.data(result, SUMS), options)
        return Made(m.file(y), size * size * taps * taps * c * c)

    return make


def matmul(
    batch: int, rows: int, columns: int = 0, *, depth: int = 0, adj_x: bool = False,
    adj_y: bool = False,
) -> Make:  # fmt: skip
    """Return products of two matrices of which none is constant; `c` is what is left out."""

    def make(kind: Kind, c: int) -> Made:
        m = Model(kind)
        wide, deep = columns or c, depth or c
        left = m.input((batch, deep, rows) if adj_x else (batch, rows, deep))
        right = m.input((batch, wide, deep) if adj_y else (batch, deep, wide), SECOND)
        y = m.data((batch, rows, wide), SUMS)
        m.add(_Code.BATCH_MATMUL, [left, right], y, BatchMatMulOptions(adj_x, adj_y))
        return Made(m.file(y), batch * rows * deep * wide)

    return make


def dense(rows: int, inputs: int) -> Make:
    """Return dense layers of `c` outputs."""

    def make(kind: Kind, c: int) -> Made:
        m = Model(kind)
        x, (w, bias) = m.input((rows, inputs)), m.weights((c, inputs), 0)
        y = m.data((rows, c), SUMS)
        m.add(_Code.FULLY_CONNECTED, [x, w, bias], y, FullyConnectedOptions())
        return Made(m.file(y), rows * inputs * c)

    return make


_RECURRENT = {
    Kind.INT8: recurrent.Kind.INT8,
    Kind.INT16: recurrent.Kind.INT16,
    Kind.FLOAT32: recurrent.Kind.FLOAT32,
}


def lstm(steps: int, inputs: int) -> Make:
    """Return LSTMs of `c` units."""

    def make(kind: Kind, c: int) -> Made:
        work = steps * recurrent.GATES * c * (inputs + c)
        return Made(recurrent.lstm(_RECURRENT[kind], steps, inputs, c), work)

    return make


def svdf(inputs: int, length: int) -> Make:
    """Return SVDFs of `c` filters."""

    def make(kind: Kind, c: int) -> Made:
        return Made(recurrent.svdf(_RECURRENT[kind], inputs, c, length), c * (inputs + length))

    return make


def rows_of(
    code: BuiltinOperator, scale: Scale, rows: int = 32, *, options: Options | None = None
) -> Make:
    """Return operators on rows of `c` elements."""

    def make(kind: Kind, c: int) -> Made:
        m = Model(kind)
        x, y = m.input((rows, c)), m.data((rows, c), scale)
        return Made(m.file(m.add(code, [x], y, options)), rows * c)

    return make


class Second(Enum):
    """What the second operand of an elementwise operator is."""

    LIKE = "an input of the same shape"
    CHANNELS = "a constant for each channel"
    COLUMN = "an input with a value for each row"
    ONE = "one constant"


def elementwise(
    code: BuiltinOperator,
    second: Second = Second.LIKE,
    scales: tuple[Scale, Scale, Scale] = (X, SECOND, Y),
    image: tuple[int, int] = IMAGE,
    rows: int = 12,
) -> Make:
    """Return an operator of two operands: images, or rows and a column."""
    options: Options = {
        _Code.ADD: AddOptions(), _Code.SUB: SubOptions(), _Code.MUL: FusedOptions(),
    }.get(code, Options())  # fmt: skip

    def make(kind: Kind, c: int) -> Made:
        m = Model(kind)
        shape: Shape = (rows, c) if second is Second.COLUMN else (1, *image, c)
        x = m.input(shape, scales[0])
        if second is Second.LIKE:
            other = m.input(shape, scales[1])
        elif second is Second.COLUMN:
            other = m.input((rows, 1), scales[1])
        else:
            other = m.constant((c,) if second is Second.CHANNELS else (), scales[1])
        y = m.data(shape, scales[2])
        return Made(
            m.file(m.add(code, [x, other], y, None if type(options) is Options else options)),
            math.prod(shape),
        )

    return make


def prelu(image: tuple[int, int] = IMAGE) -> Make:
    """Return a PRELU with a slope for each of `c` channels."""

    def make(kind: Kind, c: int) -> Made:
        m = Model(kind)
        x, y = m.input((1, *image, c)), m.data((1, *image, c), Y)
        m.add(_Code.PRELU, [x, m.constant((1, 1, c))], y)
        return Made(m.file(y), math.prod(image) * c)

    return make


def unary(
    code: BuiltinOperator,
    scale: Scale,
    given: Scale = X,
    options: Options | None = None,
    image: tuple[int, int] = IMAGE,
) -> Make:
    """Return a function of each element of an image."""

    def make(kind: Kind, c: int) -> Made:
        m = Model(kind)
        x, y = m.input((1, *image, c), given), m.data((1, *image, c), scale)
        return Made(m.file(m.add(code, [x], y, options)), math.prod(image) * c)

    return make


def converted(
    code: BuiltinOperator,
    given: Kind | None = None,
    wanted: Kind | None = None,
    image: tuple[int, int] = IMAGE,
) -> Make:
    """Return what makes an image of one kind from another, where these are said."""

    def make(kind: Kind, c: int) -> Made:
        m = Model(kind)
        x, y = m.input((1, *image, c), kind=given), m.data((1, *image, c), X, wanted)
        return Made(m.file(m.add(code, [x], y)), math.prod(image) * c)

    return make


def reduction(
    code: BuiltinOperator, *axes: int, scale: Scale = Y, image: tuple[int, int] = IMAGE
) -> Make:
    """Return a reduction of an image along axes; units are elements of the input."""

    def make(kind: Kind, c: int) -> Made:
        m = Model(kind)
        shape = (1, *image, c)
        x = m.input(shape)
        y = m.data(tuple(n for axis, n in enumerate(shape) if axis not in axes), scale)
        m.add(code, [x, m.ints(*axes)], y, ReducerOptions())
        return Made(m.file(y), math.prod(shape))

    return make


def pool(
    code: BuiltinOperator, taps: int = 3, stride: int = 1, image: tuple[int, int] = IMAGE
) -> Make:
    """Return pooling of an image with borders; units are taps of windows."""

    def make(kind: Kind, c: int) -> Made:
        m = Model(kind)
        rows, columns = _extents(image, (taps, taps), (stride, stride), Padding.SAME)
        x, y = m.input((1, *image, c)), m.data((1, rows, columns, c))
        m.add(code, [x], y, Pool2DOptions(Padding.SAME, stride, stride, taps, taps))
        return Made(m.file(y), rows * columns * c * taps * taps)

    return make


def resize(code: BuiltinOperator, image: tuple[int, int] = (8, 8)) -> Make:
    """Return an image made twice as large; units are bytes of the output."""
    high, wide = 2 * image[0], 2 * image[1]
    options: Options = ResizeNearestNeighborOptions(False, True)
    if code is _Code.RESIZE_BILINEAR:
        options = ResizeBilinearOptions(False, True)

    def make(kind: Kind, c: int) -> Made:
        m = Model(kind)
        x, y = m.input((1, *image, c)), m.data((1, high, wide, c))
        m.add(code, [x, m.ints(high, wide)], y, options)
        return Made(m.file(y), _work(code, kind, (high, wide, c)))

    return make


def _work(code: BuiltinOperator, kind: Kind, shape: Shape) -> int:
    """Return the bytes that are moved, or the elements that are computed."""
    is_moved = code is not _Code.RESIZE_BILINEAR
    return math.prod(shape) * (kind.dtype.itemsize if is_moved else 1)


def moved(move: Callable[[Model, int], tuple[Sequence[int], int]]) -> Make:
    """Return what moves elements: a function that adds it says outputs and elements."""

    def make(kind: Kind, c: int) -> Made:
        m = Model(kind)
        outputs, elements = move(m, c)
        return Made(m.file(*outputs), elements * kind.dtype.itemsize)

    return make


def pad(m: Model, c: int, image: tuple[int, int] = IMAGE) -> tuple[Sequence[int], int]:
    """Add a border of one pixel."""
    shape = (1, image[0] + 2, image[1] + 2, c)
    borders = m.ints((0, 0), (1, 1), (1, 1), (0, 0))
    inputs = [m.input((1, *image, c)), borders]
    return [m.add(_Code.PAD, inputs, m.data(shape))], math.prod(shape)


def concatenated_channels(
    m: Model, c: int, image: tuple[int, int] = IMAGE
) -> tuple[Sequence[int], int]:
    """Join two images along their channels."""
    inputs = [m.input((1, *image, c)) for _ in range(2)]
    shape = (1, *image, 2 * c)
    y = m.add(_Code.CONCATENATION, inputs, m.data(shape), ConcatenationOptions(3))
    return [y], math.prod(shape)


def concatenated_rows(m: Model, c: int) -> tuple[Sequence[int], int]:
    """Join two images along their rows."""
    inputs = [m.input((1, 8, 16, c)) for _ in range(2)]
    y = m.data((1, 16, 16, c))
    return [m.add(_Code.CONCATENATION, inputs, y, ConcatenationOptions(1))], 256 * c


def sliced_channels(m: Model, c: int) -> tuple[Sequence[int], int]:
    """Take the second half of the channels."""
    inputs = [m.input((1, 16, 16, 2 * c)), m.ints(0, 0, 0, c), m.ints(1, 16, 16, c)]
    return [m.add(_Code.SLICE, inputs, m.data((1, 16, 16, c)))], 256 * c


def split_channels(m: Model, c: int, image: tuple[int, int] = IMAGE) -> tuple[Sequence[int], int]:
    """Take both halves of the channels apart."""
    inputs = [m.ints(3), m.input((1, *image, 2 * c))]
    inputs[0] = m.builder.tensor("axis", (), np.int32, np.array(3, np.int32))
    outputs = [m.data((1, *image, c)) for _ in range(2)]
    m.builder.operator(_Code.SPLIT, inputs, outputs, SplitOptions(2))
    return outputs, 2 * math.prod(image) * c


def transposed_image(m: Model, c: int, image: tuple[int, int] = IMAGE) -> tuple[Sequence[int], int]:
    """Turn an image whose pixels stay whole."""
    inputs = [m.input((1, *image, c)), m.ints(0, 2, 1, 3)]
    y = m.add(_Code.TRANSPOSE, inputs, m.data((1, *image[::-1], c)))
    return [y], math.prod(image) * c


def channels_first(m: Model, c: int) -> tuple[Sequence[int], int]:
    """Put the channels before the pixels."""
    inputs = [m.input((1, 16, 16, c)), m.ints(0, 3, 1, 2)]
    return [m.add(_Code.TRANSPOSE, inputs, m.data((1, c, 16, 16)))], 256 * c


def gathered_rows(m: Model, c: int, rows: int = 32) -> tuple[Sequence[int], int]:
    """Take rows of a table of 64 by index."""
    m.inputs.append(m.builder.tensor("indices", (rows,), np.int32))
    inputs = [m.constant((64, c), X), m.inputs[0]]
    y = m.add(_Code.GATHER, inputs, m.data((rows, c)), GatherOptions(0))
    return [y], rows * c


def _pointwise(m: Model, x: int, given: int) -> int:
    """Return a convolution of single pixels of 16x16 to as many channels."""
    w, bias = m.weights((given, 1, 1, given), 0)
    return m.add(_Code.CONV_2D, [x, w, bias], m.data((1, 16, 16, given)), Conv2DOptions())


def concatenated_in_place(kind: Kind, c: int) -> Made:
    """Join what two convolutions write."""
    m = Model(kind)
    x = m.input((1, 16, 16, c))
    inputs = [_pointwise(m, x, c) for _ in range(2)]
    y = m.data((1, 16, 16, 2 * c))
    m.add(_Code.CONCATENATION, inputs, y, ConcatenationOptions(3))
    return Made(m.file(y), 512 * c * kind.dtype.itemsize, counted=2)


def sliced_in_place(kind: Kind, c: int) -> Made:
    """Take channels that a convolution reads."""
    m = Model(kind)
    (part,), elements = sliced_channels(m, c)
    return Made(m.file(_pointwise(m, part, c)), elements * kind.dtype.itemsize, counted=0)


def split_in_place(kind: Kind, c: int) -> Made:
    """Take channels apart that two convolutions read."""
    m = Model(kind)
    parts, elements = split_channels(m, c)
    outputs = [_pointwise(m, part, c) for part in parts]
    return Made(m.file(*outputs), elements * kind.dtype.itemsize, counted=0)
