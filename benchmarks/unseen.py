"""`python -m benchmarks unseen`: what planning states of layers that no calibration measured.

Two hundred models of one operator are drawn with random shapes, at `speed`.  Of each the
instructions that planning states stand beside those that the emulator counts, in `unseen.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import operator_models as made
from benchmarks.layers import for_speed
from benchmarks.operator_models import SUMS, Kind, Make, Second, X, Y
from benchmarks.operators import BOARDS, WITH_GOALS
from benchmarks.prices import read_prices, write_prices
from microtir import driver, frontend
from microtir.boards import load_board
from microtir.module.ir_module import IRModule
from microtir.module.program import Program
from microtir.operators.common.tflite_schema import BuiltinOperator as Code
from microtir.operators.softmax.tflite import SoftmaxOptions
from microtir.profiling import profile

RECORDED = Path(__file__).parent / "unseen.json"
COUNT = 200
LIMITS = (0.05, 0.1, 0.15)


class Draw:
    """Random sizes, the same for a number of a model."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([34, seed])

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def of(self, *choices: int) -> int:
        return int(self.rng.choice(choices))

    def image(self, low: int = 4) -> tuple[int, int]:
        return self.number(low, 20), self.number(low, 20)


_MULTIPLIED = (Kind.INT8, Kind.INT8, Kind.INT8, Kind.INT16, Kind.UINT8, Kind.FLOAT32)
_INT8, _ALSO_LONG = (Kind.INT8,), (Kind.INT8, Kind.INT8, Kind.INT16)
_BYTES = (Kind.INT8, Kind.INT8, Kind.UINT8)
_ALL = (Kind.INT8, Kind.INT8, Kind.INT16, Kind.UINT8, Kind.FLOAT32)

_EACH: tuple[tuple[str, tuple[Kind, ...], Callable[[Draw], Make]], ...] = (
    ("convolution", _MULTIPLIED, lambda d: made.convolution(
        d.image(7), d.of(3, 3, 5), d.of(1, 2), stride=d.of(1, 2), channels=d.of(0, 0, 1, 3))),
    ("pointwise convolution", _MULTIPLIED, lambda d: made.convolution(
        d.image(), 1, channels=d.number(1, 64))),
    ("depthwise", _MULTIPLIED, lambda d: made.depthwise(
        d.image(5), d.of(3, 3, 5), d.of(1, 1, 1, 2))),
    ("dense", _MULTIPLIED, lambda d: made.dense(d.of(1, 1, 1, 4), d.number(4, 200))),
    ("grouped convolution", _ALSO_LONG, lambda d: made.convolution(
        d.image(6), d.of(1, 3), groups=d.of(2, 4))),
    ("transposed convolution", _ALSO_LONG, lambda d: made.transposed(
        d.number(3, 10), d.of(2, 3, 4))),
    ("batch matmul", _ALSO_LONG, lambda d: made.matmul(
        d.of(1, 2, 4), d.number(3, 30), d.number(3, 30), adj_y=bool(d.of(0, 1)))),
    ("LSTM", _INT8, lambda d: made.lstm(d.number(2, 12), d.number(3, 24))),
    ("softmax", _ALL, lambda d: made.rows_of(
        Code.SOFTMAX, made.UNIT, d.of(1, 1, 8, 24), options=SoftmaxOptions())),
    ("add", _ALL, lambda d: made.elementwise(Code.ADD, image=d.image())),
    ("add of constants", _BYTES, lambda d: made.elementwise(
        Code.ADD, Second.CHANNELS, image=d.image())),
    ("multiply", _BYTES, lambda d: made.elementwise(
        Code.MUL, scales=(X, made.SECOND, made.Scale(0.2, -7)), image=d.image())),
    ("subtract", _BYTES, lambda d: made.elementwise(Code.SUB, image=d.image())),
    ("prelu", _INT8, lambda d: made.prelu(d.image())),
    ("maximum", _BYTES, lambda d: made.elementwise(
        Code.MAXIMUM, scales=(X, X, X), image=d.image())),
    ("relu6", _BYTES, lambda d: made.unary(Code.RELU6, X, image=d.image())),
    ("logistic", _ALL, lambda d: made.unary(Code.LOGISTIC, made.UNIT, image=d.image())),
    ("hard-swish", _BYTES, lambda d: made.unary(Code.HARD_SWISH, Y, image=d.image())),
    ("requantise", _BYTES, lambda d: made.unary(Code.QUANTIZE, Y, image=d.image())),
    ("quantize", _BYTES, lambda d: made.converted(Code.QUANTIZE, Kind.FLOAT32, image=d.image())),
    ("dequantize", _BYTES, lambda d: made.converted(
        Code.DEQUANTIZE, wanted=Kind.FLOAT32, image=d.image())),
    ("mean over H and W", _BYTES, lambda d: made.reduction(Code.MEAN, 1, 2, image=d.image())),
    ("sum over H and W", _INT8, lambda d: made.reduction(
        Code.SUM, 1, 2, scale=SUMS, image=d.image())),
    ("average pooling", _ALL, lambda d: made.pool(
        Code.AVERAGE_POOL_2D, d.of(2, 3), d.of(1, 2), d.image())),
    ("max pooling", _ALL, lambda d: made.pool(
        Code.MAX_POOL_2D, d.of(2, 3), d.of(1, 2), d.image())),
    ("bilinear", _BYTES, lambda d: made.resize(Code.RESIZE_BILINEAR, d.image())),
    ("nearest", _BYTES, lambda d: made.resize(Code.RESIZE_NEAREST_NEIGHBOR, d.image())),
    ("pad", _BYTES, lambda d: made.moved(partial(made.pad, image=d.image()))),
    ("concatenation", _BYTES, lambda d: made.moved(
        partial(made.concatenated_channels, image=d.image()))),
    ("split", _BYTES, lambda d: made.moved(partial(made.split_channels, image=d.image()))),
    ("transpose", _BYTES, lambda d: made.moved(partial(made.transposed_image, image=d.image()))),
    ("gather", _BYTES, lambda d: made.moved(partial(made.gathered_rows, rows=d.number(1, 40)))),
)  # fmt: skip
"""Operators, the kinds of data of which one is drawn, and their sizes but for the channels."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What planning states of a model, and what the emulator counts."""

    kernels: str
    instructions: int
    stated: int

    @property
    def error(self) -> float:
        return self.stated / self.instructions - 1


def drawn(number: int) -> tuple[str, IRModule]:
    """Return the name and the model of a number: operators in turn, all else at random."""
    name, kinds, sized = _EACH[number % len(_EACH)]
    d = Draw(number)
    kind = kinds[d.number(0, len(kinds) - 1)]
    channels = d.number(1, 40)
    file = sized(d)(kind, channels).file
    return f"{number}: {kind.value} {name}, {channels} channels", frontend.from_tflite(file)


def stated(program: Program) -> Statement:
    """Return the kernels of the operators of a file, and their instructions; none are counted."""
    of_file = [d for d in program.decisions.values() if d.index >= 0]
    kernels = ", ".join(d.kernel for d in of_file)
    return Statement(kernels, 0, sum(d.instructions for d in of_file))


def measure_all(cpus: Sequence[str]) -> dict[str, dict[str, Statement]]:
    """Measure all models, print a line for each, and how near statements are."""
    found: dict[str, dict[str, Statement]] = {}
    for cpu in cpus or WITH_GOALS:
        board, found[cpu] = load_board(BOARDS[cpu]), {}
        for number in range(COUNT):
            name, module = drawn(number)
            artifact = driver.build(module, for_speed(board, "unseen"))
            layers = [x for x in profile(artifact, board).layers if x.index is not None]
            taken = sum(layer.instructions for layer in layers)
            s = found[cpu][name] = replace(
                stated(artifact.module.require_program("unseen")), instructions=taken
            )
            print(f"{name:<60}{taken:>10}{s.error:>+8.2f}  {s.kernels}", flush=True)
        print(f"{cpu}: {nearness(found[cpu])}")
    return found


def nearness(statements: Mapping[str, Statement]) -> str:
    """Return the parts of models that are stated within the limits, and the worst."""
    errors = {name: abs(s.error) for name, s in statements.items()}
    parts = ", ".join(
        f"{np.mean([e <= limit for e in errors.values()]):.0%} within {limit:.0%}"
        for limit in LIMITS
    )
    worst = max(errors, key=lambda name: errors[name])
    return f"{len(errors)} models: {parts}; the worst is {worst}: {errors[worst]:.0%}"


def read_recorded() -> dict[str, dict[str, Statement]]:
    """Read the figures of `unseen.json`."""
    return read_prices(RECORDED, Statement)


def record(found: Mapping[str, Mapping[str, Statement]]) -> None:
    """Write the figures; those of other CPUs stay."""
    write_prices(RECORDED, Statement, found)
