"""The table of `python -m benchmarks operators`: operators, their sizes, and what they may take.

A row is an operator at one shape.  Its goals are instructions for each unit of work, counted from
kernels of the nearest kind; they hold where channels are a multiple of four, and at `awkward`
numbers of channels `AWKWARD` times as much may be taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from benchmarks import operator_models as made
from benchmarks.operator_models import SECOND, SUMS, Kind, Make, Second, X, Y
from microtir.operators.common.tflite_schema import BuiltinOperator as Code
from microtir.operators.common.tflite_schema import FusedOptions, Padding
from microtir.operators.softmax.tflite import SoftmaxOptions

AWKWARD = 1.3
_UINT8 = 1.1  # times int8
_LONG_M4, _LONG_M55 = 1.6, 2.3  # times int8, of int16 with weights of int8


class Unit(Enum):
    """What instructions are counted for."""

    MAC = "MAC"
    ELEMENT = "element"
    INPUT = "input element"
    TAP = "window tap"
    BYTE = "byte"


@dataclass(frozen=True, slots=True)
class Goal:
    """Instructions for a unit on a Cortex-M4 and on a Cortex-M55; None where nobody said."""

    m4: float | None = None
    m55: float | None = None

    def times(self, m4: float, m55: float | None = None) -> Goal:
        """Return a goal that is so many times as large."""
        by_helium = m4 if m55 is None else m55
        return Goal(self.m4 and self.m4 * m4, self.m55 and self.m55 * by_helium)

    def on(self, cpu: str) -> float | None:
        return {"cortex-m4": self.m4, "cortex-m55": self.m55}.get(cpu)


@dataclass(frozen=True, slots=True)
class Row:
    """An operator at one shape.

    Args:
        name: of the operator and its shape.
        make: its models, given a number of channels.
        unit: of work.
        goals: by kind of data; kinds without one are not measured.
        channels: at which the goals hold.
        awkward: other numbers of channels, of int8.
        what: these channels are.
        beside: instructions that the goal allows for each row of `channels` units.
    """

    name: str
    make: Make
    unit: Unit
    goals: Mapping[Kind, Goal]
    channels: int = 16
    awkward: tuple[int, ...] = ()
    beside: float = 0.0
    what: str = "channels"


@dataclass(frozen=True, slots=True)
class Case:
    """A row of one kind of data at a number of channels: what is measured."""

    row: Row = field(repr=False)
    kind: Kind
    channels: int

    @property
    def name(self) -> str:
        is_awkward = self.channels != self.row.channels
        return f"{self.row.name}, {self.channels} {self.row.what}" if is_awkward else self.row.name

    @property
    def full_name(self) -> str:
        return f"{self.kind.value}: {self.name}"

    def goal(self, cpu: str) -> float | None:
        """Return the instructions for a unit that are aimed at."""
        goal = self.row.goals[self.kind].on(cpu)
        if goal is None:
            return None
        most = AWKWARD if self.channels != self.row.channels else 1.0
        return round(most * (goal + self.row.beside / self.channels), 3)


_MULTIPLIED = (Kind.INT8, Kind.INT16, Kind.UINT8, Kind.UINT8_SHIFTED)
_INTEGERS = (Kind.INT8, Kind.INT16)  # what there is no operator of uint8 for
_BYTES = (Kind.INT8, Kind.UINT8)
_MOVED = (Kind.INT8, Kind.INT16, Kind.UINT8)


def _goals(
    int8: Goal, kinds: tuple[Kind, ...] = _BYTES, others: Mapping[Kind, Goal] | None = None
) -> dict[Kind, Goal]:
    """Return the goals of kinds, of which most follow from that of int8."""
    following = {
        Kind.INT8: int8,
        Kind.INT16: int8.times(_LONG_M4, _LONG_M55),
        Kind.UINT8: int8.times(_UINT8),
        Kind.UINT8_SHIFTED: int8.times(_UINT8),
    }
    return {**{kind: following[kind] for kind in kinds}, **(others or {})}


def _macs(
    name: str,
    make: Make,
    goal: Goal,
    channels: int = 16,
    awkward: tuple[int, ...] = (),
    kinds: tuple[Kind, ...] = _MULTIPLIED,
    floats: Goal | None = None,
    what: str = "channels",
) -> Row:
    others = {} if floats is None else {Kind.FLOAT32: floats}
    return Row(name, make, Unit.MAC, _goals(goal, kinds, others), channels, awkward, what=what)


_FLOATS = Goal(2.0)

PRODUCTS = (
    _macs("grouped convolution 3x3, 4 groups, 16x16x16 to 32", made.convolution(16, 3, 2, groups=4),
          Goal(1.25, 0.35), 4, (3, 5), floats=_FLOATS),
    _macs("grouped convolution 1x1, 2 groups, 16x16x16 to 32", made.convolution(16, 1, 2, groups=2),
          Goal(1.25, 0.35), 8, (7, 15), floats=_FLOATS),
    _macs("batch matmul 4x16x32x16", made.matmul(4, 16, 16), Goal(1.5, 0.35), 32, (),
          _INTEGERS, _FLOATS),
    _macs("batch matmul 4x16x32x16, columns", made.matmul(4, 16, depth=32), Goal(1.5, 0.35), 16,
          (13, 30), (Kind.INT8,), what="columns"),
    _macs("batch matmul 4x16x32x16, adj", made.matmul(4, 16, 16, adj_y=True), Goal(1.5, 0.35), 32,
          (17, 30), _INTEGERS, what="deep"),
    _macs("batch matmul 4x16x32x16, adj of the first", made.matmul(4, 16, 16, adj_x=True),
          Goal(1.5, 0.35), 32, (17, 30), (Kind.INT8,), what="deep"),
    _macs("batch matmul 4x16x16x16", made.matmul(4, 16, 16), Goal(2.2, 0.6), 16, (15,),
          _INTEGERS, what="deep"),
    _macs("batch matmul 4x16x8x16", made.matmul(4, 16, 16), Goal(3.5, 1.2), 8, (5, 7),
          _INTEGERS, what="deep"),
    _macs("batch matmul 4x16x4x16, adj", made.matmul(4, 16, 16, adj_y=True), Goal(3.5, 1.2), 4, (),
          _INTEGERS),
    _macs("attention scores 4x32x16x32, adj", made.matmul(4, 32, 32, adj_y=True), Goal(2.2, 0.6),
          16, (), _INTEGERS),
    _macs("attention values 4x32x32x16", made.matmul(4, 32, depth=32), Goal(1.5, 0.35), 16,
          (), _INTEGERS),
    _macs("transposed convolution 2x2, stride 2, 8x8x16", made.transposed(8, 2), Goal(1.3, 0.35),
          16, (5, 30), floats=_FLOATS),
    _macs("transposed convolution 3x3, stride 2, 8x8x16", made.transposed(8, 3), Goal(1.3, 0.35),
          16, (7, 13), floats=_FLOATS),
    _macs("transposed convolution 4x4, stride 2, 8x8x16", made.transposed(8, 4), Goal(1.3, 0.35),
          16, (1, 10), floats=_FLOATS),
    _macs("depthwise 3x3, multiplier 2, 16x16x16", made.depthwise(16, 3, 2), Goal(2.6, 1.2), 16,
          (5, 15)),
    _macs("depthwise 3x3, multiplier 4, 16x16x16", made.depthwise(16, 3, 4), Goal(2.6, 1.2), 16,
          (1, 3)),
    _macs("depthwise 7x7, 16x16x16", made.depthwise(16, 7), Goal(2.3, 1.0), 16, (7, 30)),
    _macs("depthwise 3x3, dilated, 16x16x16", made.depthwise(16, 3, dilation=2), Goal(2.4, 1.0), 16,
          (5, 17)),
    _macs("depthwise 1x3, 16x16x16", made.depthwise(16, (1, 3)), Goal(3.0, 1.0), 16, (10, 15)),
    _macs("depthwise 9x1, 64x1x16", made.depthwise((64, 1), (9, 1)), Goal(3.0, 1.0), 16, (3, 13)),
    _macs("convolution 1x3, dilated by 4, 1x72x16",
          made.convolution((1, 72), (1, 3), dilation=(1, 4), padding=Padding.VALID),
          Goal(1.2, 1.0), 16, (7, 30)),
    _macs("first layer 3x3, 32x32x3", made.convolution(32, 3, channels=3), Goal(1.15), 16, (5, 15)),
    _macs("first layer 3x3, 32x32x1", made.convolution(32, 3, channels=1), Goal(1.6), 16, (7, 30)),
    _macs("first layer 7x7, stride 2, 32x32x3", made.convolution(32, 7, channels=3, stride=2),
          Goal(1.05), 16, (10, 13)),
    _macs("convolution 3x3 of 4 frames, 8x8x16", made.convolution(8, 3, frames=4), Goal(0.52, 0.17),
          16, (5, 30), (Kind.INT8,)),
    _macs("first layer 3x3 of 6 frames, 12x12x1 to 8",
          made.convolution(12, 3, channels=1, frames=6), Goal(1.6), 8, (3, 10), (Kind.INT8,)),
    _macs("convolution 3x3, 8x8x16", made.convolution(8, 3), Goal(), 16, (), (Kind.INT8,)),
    _macs("dense, 10 rows of 64 to 2", made.dense(10, 64), Goal(2 + 12 / 64), 2, (1, 3),
          what="outputs"),
    _macs("dense, 64 to 2", made.dense(1, 64), Goal(2 + 12 / 64), 2, (1, 3), what="outputs"),
    _macs("LSTM, 20 steps of 16 to 32", made.lstm(20, 16), Goal(1.6, 0.5), 32, (13, 30),
          (Kind.INT8, Kind.INT16), what="units"),
    _macs("SVDF, 40 inputs, 10 places, 64 filters", made.svdf(40, 10), Goal(1.6, 0.5), 64, (17, 30),
          (Kind.INT8,), what="filters"),
    _macs("convolution 3x3, 16x16x16", made.convolution(16, 3), Goal(), 16, (), (Kind.INT8,),
          Goal(None, 0.45)),
    _macs("convolution 1x1, 16x16x16", made.convolution(16, 1), Goal(), 16, (), (Kind.INT8,),
          Goal(None, 0.45)),
    _macs("depthwise 3x3, 16x16x16", made.depthwise(16, 3), Goal(), 16, (), (Kind.INT8,),
          Goal(None, 0.9)),
    _macs("dense, 256 to 64", made.dense(1, 256), Goal(), 64, (), (Kind.INT8,), Goal(None, 0.6)),
)  # fmt: skip


def _elements(
    name: str,
    make: Make,
    goal: Goal,
    channels: int = 32,
    awkward: tuple[int, ...] = (),
    unit: Unit = Unit.ELEMENT,
    kinds: tuple[Kind, ...] = _BYTES,
    others: Mapping[Kind, Goal] | None = None,
    beside: float = 0.0,
    what: str = "channels",
) -> Row:
    return Row(name, make, unit, _goals(goal, kinds, others), channels, awkward, beside, what)


_SOFTMAX = {Kind.INT16: Goal(45.0), Kind.FLOAT32: Goal(30.0)}
_OF_INT16 = {Kind.INT16: Goal(13.0)}
_EQUAL = (X, X, X)

ELEMENTS = (
    _elements("softmax, 32 rows of 32",
              made.rows_of(Code.SOFTMAX, made.UNIT, options=SoftmaxOptions()),
              Goal(15, 8), 32, (10, 17), others=_SOFTMAX, beside=60, what="a row"),
    _elements("log-softmax, 32 rows of 32",
              made.rows_of(Code.LOG_SOFTMAX, made.Scale(16 / 256, 127)),
              Goal(20, 8), 32, (10, 17), kinds=(Kind.INT8,), beside=60, what="a row"),
    _elements("l2-norm, 32 rows of 32",
              made.rows_of(Code.L2_NORMALIZATION, made.SIGNED_UNIT, options=FusedOptions()),
              Goal(14, 8), 32, (7, 30), kinds=(Kind.INT8,), beside=60, what="a row"),
    _elements("add, 16x16x32", made.elementwise(Code.ADD), Goal(11.5, 3.6), 32, (5, 7),
              others={Kind.FLOAT32: Goal(3.5)}),
    _elements("add of 32 constants, 16x16x32", made.elementwise(Code.ADD, Second.CHANNELS),
              Goal(12, 3.3), 32, (3, 10)),
    _elements("add of a column, 12x32", made.elementwise(Code.ADD, Second.COLUMN), Goal(12, 3.3),
              32, (5, 17)),
    _elements("add of a constant, 16x16x32", made.elementwise(Code.ADD, Second.ONE), Goal(12, 3.3)),
    _elements("subtract, 16x16x32", made.elementwise(Code.SUB), Goal(12, 3.6), 32, (7, 15)),
    _elements("multiply, 16x16x32",
              made.elementwise(Code.MUL, scales=(X, SECOND, made.Scale(0.2, -7))),
              Goal(11, 3.4), 32, (5, 13)),
    _elements("squared difference, 16x16x32",
              made.elementwise(Code.SQUARED_DIFFERENCE, scales=(X, SECOND, made.Scale(0.4, -128))),
              Goal(12), 32, (3, 10), kinds=(Kind.INT8,)),
    _elements("prelu, 16x16x32", made.prelu(), Goal(9), 32, (5, 30), kinds=(Kind.INT8,)),
    _elements("maximum, 16x16x32", made.elementwise(Code.MAXIMUM, scales=_EQUAL), Goal(2, 0.4), 32,
              (3, 7)),
    _elements("minimum of 32 constants, 16x16x32",
              made.elementwise(Code.MINIMUM, Second.CHANNELS, _EQUAL), Goal(2, 0.4), 32, (5, 10)),
    _elements("clamp of equal scales, 16x16x32", made.unary(Code.RELU6, X), Goal(2, 0.4), 32,
              (3, 15)),
    _elements("reduce_max over H and W, 16x16x32", made.reduction(Code.REDUCE_MAX, 1, 2, scale=X),
              Goal(1.3, 0.4), 32, (5, 30), Unit.INPUT, (Kind.INT8,)),
    _elements("reduce_max over the last axis, 16x16x32",
              made.reduction(Code.REDUCE_MAX, 3, scale=X),
              Goal(1.3, 0.4), 32, (7, 30), Unit.INPUT, (Kind.INT8,)),
    _elements("tanh, 16x16x32", made.unary(Code.TANH, made.SIGNED_UNIT), Goal(3.6, 0.6), 32, (3, 5),
              others={**_OF_INT16, Kind.FLOAT32: Goal(25)}),
    _elements("logistic, 16x16x32", made.unary(Code.LOGISTIC, made.UNIT), Goal(3.6, 0.6),
              others={**_OF_INT16, Kind.FLOAT32: Goal(25)}),
    _elements("hard-swish, 16x16x32", made.unary(Code.HARD_SWISH, Y), Goal(3.6, 0.6)),
    _elements("requantise, 16x16x32", made.unary(Code.QUANTIZE, Y), Goal(3.6, 0.6)),
    _elements("uint8 to int8, 16x16x32", made.converted(Code.QUANTIZE, wanted=Kind.INT8),
              Goal(3.6, 0.6), kinds=(Kind.UINT8,)),
    _elements("quantize, 16x16x32", made.converted(Code.QUANTIZE, Kind.FLOAT32), Goal(12, 2),
              32, (3, 7)),
    _elements("dequantize, 16x16x32", made.converted(Code.DEQUANTIZE, wanted=Kind.FLOAT32),
              Goal(6, 2), 32, (3, 7)),
    _elements("mean over H and W, 16x16x32", made.reduction(Code.MEAN, 1, 2), Goal(1.3, 0.3), 32,
              (10, 13), Unit.INPUT),
    _elements("sum over H and W, 16x16x32", made.reduction(Code.SUM, 1, 2, scale=SUMS),
              Goal(1.3, 0.3), 32, (5, 30), Unit.INPUT, (Kind.INT8,)),
    _elements("mean over the last axis, 16x16x32", made.reduction(Code.MEAN, 3), Goal(1.3, 0.3), 32,
              (15, 17), Unit.INPUT, (Kind.INT8,)),
)  # fmt: skip

_POOLED = (Kind.INT8, Kind.INT16, Kind.UINT8)

WINDOWS = (
    _elements("average pooling 3x3, 16x16x32", made.pool(Code.AVERAGE_POOL_2D), Goal(2.2, 0.6), 32,
              (5, 13), Unit.TAP, _POOLED),
    _elements("max pooling 3x3, 16x16x32", made.pool(Code.MAX_POOL_2D), Goal(1.5, 0.3), 32, (7, 30),
              Unit.TAP, _POOLED, {Kind.FLOAT32: Goal(3)}),
    _elements("bilinear, 8x8x32 to 16x16", made.resize(Code.RESIZE_BILINEAR), Goal(9, 3), 32,
              (3, 10), kinds=_MOVED),
)  # fmt: skip

_LONG, _SHORT, _SHORTEST, _NONE = Goal(0.6, 0.3), Goal(2.0), Goal(4.0), Goal(0.0, 0.0)


def _moves(
    name: str, make: Make, goal: Goal, channels: int, kinds: tuple[Kind, ...] = _MOVED
) -> Row:
    return Row(name, make, Unit.BYTE, _goals(goal, kinds), channels)


MOVES = (
    _moves("pad, 16x16x32", made.moved(made.pad), _LONG, 32),
    _moves("pad, 16x16x3", made.moved(made.pad), _LONG, 3),
    _moves("concat of channels, 16 and 16", made.moved(made.concatenated_channels), _LONG, 16),
    _moves("concat of channels, 10 and 10", made.moved(made.concatenated_channels), _SHORT, 10),
    _moves("concat of channels, 3 and 3", made.moved(made.concatenated_channels), _SHORTEST, 3),
    _moves("concat of rows, 8x16x32", made.moved(made.concatenated_rows), _LONG, 32),
    _moves("slice of channels, 16 of 32", made.moved(made.sliced_channels), _LONG, 16),
    _moves("slice of channels, 5 of 10", made.moved(made.sliced_channels), _SHORT, 5),
    _moves("slice of channels, 1 of 2", made.moved(made.sliced_channels), _SHORTEST, 1),
    _moves("split of channels, 16 and 16", made.moved(made.split_channels), _LONG, 16),
    _moves("split of channels, 7 and 7", made.moved(made.split_channels), _SHORT, 7),
    _moves("split of channels, 3 and 3", made.moved(made.split_channels), _SHORTEST, 3),
    _moves("transpose of H and W, 16x16x32", made.moved(made.transposed_image), _LONG, 32),
    _moves("transpose of H and W, 16x16x8", made.moved(made.transposed_image), _SHORT, 8),
    _moves("transpose of H and W, 16x16x3", made.moved(made.transposed_image), _SHORTEST, 3),
    _moves("transpose to channels first, 16x16x32", made.moved(made.channels_first), _SHORTEST, 32),
    _moves("nearest, 8x8x32 to 16x16", made.resize(Code.RESIZE_NEAREST_NEIGHBOR), _LONG, 32),
    _moves("nearest, 8x8x10 to 16x16", made.resize(Code.RESIZE_NEAREST_NEIGHBOR), _SHORT, 10),
    _moves("nearest, 8x8x3 to 16x16", made.resize(Code.RESIZE_NEAREST_NEIGHBOR), _SHORTEST, 3),
    _moves("gather, 32 rows of 32", made.moved(made.gathered_rows), _LONG, 32),
    _moves("gather, 32 rows of 10", made.moved(made.gathered_rows), _SHORT, 10),
    _moves("gather, 32 rows of 3", made.moved(made.gathered_rows), _SHORTEST, 3),
    _moves(
        "concat of what two convolutions write, 16 and 16",
        made.concatenated_in_place,
        _NONE,
        16,
        (Kind.INT8,),
    ),
    _moves(
        "slice that a convolution reads, 16 of 32", made.sliced_in_place, _NONE, 16, (Kind.INT8,)
    ),
    _moves(
        "split that two convolutions read, 16 and 16", made.split_in_place, _NONE, 16, (Kind.INT8,)
    ),
)

ROWS = (*PRODUCTS, *ELEMENTS, *WINDOWS, *MOVES)


def cases() -> Iterator[Case]:
    """Yield all that is measured: each kind by itself, int8 first, each row with its channels."""
    for kind in Kind:
        for row in ROWS:
            if kind in row.goals:
                yield Case(row, kind, row.channels)
                others = row.awkward if kind is Kind.INT8 else ()
                yield from (Case(row, kind, channels) for channels in others)
