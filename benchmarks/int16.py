"""`python -m benchmarks int16`: layers of int16 with weights of int8, beside the same in int8.

Each layer is a model of its own with random weights, as large as those of small networks, and is
compiled for speed and run on emulated cores with Arm's DSP extension and with Helium.  Where a
layer is `wide`, its sums are added in 64 bits, because biases are so large that 32 could overflow.
Those of more than 2000 inputs are wide by their products alone.
`--record` writes the instructions to `int16.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from benchmarks.layers import for_speed, layer, module_of
from benchmarks.prices import read_prices, write_prices
from microtir import driver
from microtir.boards import load_board
from microtir.dtype import DType
from microtir.graph.ir import Quantization, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.module.ir_module import IRModule
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.recurrent.definition import GATES, Lstm
from microtir.profiling import profile

RECORDED = Path(__file__).parent / "int16.json"
BOARDS = ("mps2_an386", "mps3_an547")

_SAME = Padding2D(1, 1, 1, 1)
_HUGE = 1 << 31  # a bias with which sums may leave 32 bits
_INT8, _INT16 = 1 / 32, 1 / 8192  # scales of data
_WEIGHT = 1 / 256


@dataclass(frozen=True, slots=True)
class Price:
    """Instructions of a layer in both types, and the kernels that compute it."""

    int8: int
    int16: int
    kernel8: str
    kernel16: str

    @property
    def times(self) -> float:
        """Return how many times the instructions of int8 the layer takes in int16."""
        return self.int16 / self.int8


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes the tensors of a layer in a type."""

    dtype: DType
    rng: np.random.Generator
    wide: bool = False

    @property
    def is_long(self) -> bool:
        return self.dtype is DType.INT16

    def data(self, name: str, shape: tuple[int, ...]) -> Tensor:
        return Tensor(name, self._type(shape, self.dtype, _INT16 if self.is_long else _INT8))

    def weights(self, name: str, shape: tuple[int, ...]) -> Tensor:
        values = self.rng.integers(-60, 61, shape).astype(np.int8)
        return Tensor(name, self._type(shape, DType.INT8, _WEIGHT), values)

    def bias(self, name: str, count: int) -> Tensor:
        dtype = DType.INT64 if self.is_long else DType.INT32
        values = self.rng.integers(-999, 1000, count).astype(dtype.value)
        if self.wide and self.is_long:
            values[0] = _HUGE
        scale = (_INT16 if self.is_long else _INT8) * _WEIGHT
        return Tensor(name, self._type((count,), dtype, scale), values)

    def _type(self, shape: tuple[int, ...], dtype: DType, scale: float) -> TensorType:
        return TensorType(shape, dtype, Quantization((float(np.float32(scale)),), (0,)))


def _linear(
    op: Operator, shape: tuple[int, ...], weights: tuple[int, ...], *, wide: bool = False
) -> Callable[[DType], IRModule]:
    def make(dtype: DType) -> IRModule:
        maker = _Maker(dtype, np.random.default_rng(0), wide)
        channels = weights[-1] if isinstance(op, DepthwiseConv2D) else weights[0]
        x, y = maker.data("x", shape), maker.data("y", (*shape[:-1], channels))
        inputs = (x, maker.weights("w", weights), maker.bias("b", channels))
        return module_of(layer(op, inputs, (y,), "layer"))

    return make


def _lstm(steps: int, width: int, units: int) -> Callable[[DType], IRModule]:
    def make(dtype: DType) -> IRModule:
        maker = _Maker(dtype, np.random.default_rng(0))
        x, hidden = maker.data("x", (1, steps, width)), maker.data("hidden", (1, units))
        cell_type = TensorType((1, units), DType.INT16, Quantization((2.0**-11,), (0,)))
        inputs = (
            x, hidden, Tensor("cell", cell_type),
            *(maker.weights(f"w{n}", (units, width)) for n in range(GATES)),
            *(maker.weights(f"r{n}", (units, units)) for n in range(GATES)),
            *(maker.bias(f"b{n}", units) for n in range(GATES)),
        )  # fmt: skip
        outputs = (
            maker.data("y", (1, steps, units)),
            maker.data("new_hidden", (1, units)),
            Tensor("new_cell", cell_type),
        )
        return module_of(layer(Lstm(), inputs, outputs, "layer"))

    return make


_SQUARE, _KWS, _DEPTH = (1, 16, 16, 16), (1, 25, 5, 64), (1, 16, 16, 32)

LAYERS: Mapping[str, Callable[[DType], IRModule]] = MappingProxyType(
    {
        "convolution 3x3, 16x16x16 to 32": _linear(Conv2D(padding=_SAME), _SQUARE, (32, 3, 3, 16)),
        "convolution 3x3, 16x16x3 to 16": _linear(
            Conv2D(padding=_SAME), (*_SQUARE[:3], 3), (16, 3, 3, 3)
        ),
        "convolution 1x1, 25x5x64 to 64": _linear(Conv2D(), _KWS, (64, 1, 1, 64)),
        "the same, wide": _linear(Conv2D(), _KWS, (64, 1, 1, 64), wide=True),
        "depthwise 3x3, 25x5x64": _linear(DepthwiseConv2D(padding=_SAME), _KWS, (1, 3, 3, 64)),
        "depthwise 3x3, 16x16x32": _linear(DepthwiseConv2D(padding=_SAME), _DEPTH, (1, 3, 3, 32)),
        "depthwise 3x3, 16x16x32, wide": _linear(
            DepthwiseConv2D(padding=_SAME), _DEPTH, (1, 3, 3, 32), wide=True
        ),
        "fully connected, 256 to 128": _linear(FullyConnected(), (1, 256), (128, 256)),
        "fully connected, 256 to 128, wide": _linear(
            FullyConnected(), (1, 256), (128, 256), wide=True
        ),
        "convolution 3x3, 5x5x256 to 32": _linear(
            Conv2D(padding=_SAME), (1, 5, 5, 256), (32, 3, 3, 256)
        ),
        "fully connected, 3072 to 32": _linear(FullyConnected(), (1, 3072), (32, 3072)),
        "LSTM, 20 steps, 16 inputs, 32 units": _lstm(20, 16, 32),
    }
)


def price(name: str, board_name: str) -> Price:
    """Build and measure a layer in both types."""
    board = load_board(board_name)
    config = for_speed(board)

    def measured(dtype: DType) -> tuple[int, str]:
        artifact = driver.build(LAYERS[name](dtype), config)
        (operator,) = artifact.module.require_program("int16").plan.operators
        return profile(artifact, board).instructions, operator.candidate.kernel

    (int8, kernel8), (int16, kernel16) = (measured(t) for t in (DType.INT8, DType.INT16))
    return Price(int8, int16, kernel8, kernel16)


def measure_all(named: list[str]) -> dict[str, dict[str, Price]]:
    """Print a line for each layer, on the boards that are named, or on all."""
    found: dict[str, dict[str, Price]] = {}
    for board in named or BOARDS:
        print(f"{board:<40}{'int8':>12}{'int16':>12}{'times':>8}")
        found[board] = {}
        for name in LAYERS:
            p = found[board][name] = price(name, board)
            print(f"{name:<40}{p.int8:>12,}{p.int16:>12,}{p.times:>8.2f}  {p.kernel16}", flush=True)
    return found


def read_recorded() -> dict[str, dict[str, Price]]:
    """Read the figures of `int16.json`."""
    return read_prices(RECORDED, Price)


def record(found: Mapping[str, Mapping[str, Price]]) -> None:
    """Write the figures; those of other boards stay."""
    write_prices(RECORDED, Price, found)
