"""Random chains of operators of int8 whose every tensor has a scale and a zero point of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from microtir.operators.common.tflite_schema import BuiltinOperator as Code
from microtir.operators.common.tflite_schema import Options, Padding, TfliteActivation
from microtir.operators.convolution.tflite import Conv2DOptions
from microtir.operators.indexing.tflite import GatherOptions
from microtir.operators.movement.tflite import ReshapeOptions, SplitOptions
from microtir.operators.rearrangement.tflite import BlockOptions
from microtir.operators.resize.tflite import (
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
)
from microtir.writers.tflite import TfliteBuilder
from tests.support.sketch import Array, Case, Shape

_STEPS = (
    *("reshape", "transpose", "pad", "slice", "resize", "halves", "clamp", "relu", "maximum"),
    *("convolution", "convolution", "rearrange", "repeat"),
)
_LARGEST = 400  # elements, so that a chain of many steps stays small


@dataclass
class _Chain:
    """A model in the making: the tensor that its last step gave, with its shape."""

    rng: np.random.Generator
    shape: Shape
    builder: TfliteBuilder = field(default_factory=TfliteBuilder)
    count: int = 0
    scales: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.last = self.tensor(self.shape)

    def tensor(self, shape: Shape, data: Array | None = None) -> int:
        self.count += 1
        scale = float(np.float32(2.0 ** self.rng.uniform(-5, -3)))
        zero_point = int(self.rng.integers(-128, 128))
        index = self.builder.tensor(f"t{self.count}", shape, np.int8, data, [scale], [zero_point])
        self.scales[index] = scale
        return index

    def ints(self, *numbers: int) -> int:
        self.count += 1
        data = np.array(numbers, np.int32)
        return self.builder.tensor(f"t{self.count}", data.shape, np.int32, data)

    def step(
        self, code: Code, more: list[int], shape: Shape, options: Options | None = None
    ) -> None:
        """Apply an operator to the last tensor and other inputs."""
        made = self.tensor(shape)
        self.builder.operator(code, [self.last, *more], [made], options)
        self.last, self.shape = made, shape

    def reshape(self) -> None:
        n, h, w, c = self.shape
        shape = (n, w, h, c) if self.rng.random() < 0.5 else (n, 1, h * w, c)
        self.step(Code.RESHAPE, [self.ints(*shape)], shape, ReshapeOptions(shape))

    def transpose(self) -> None:
        n, h, w, c = self.shape
        self.step(Code.TRANSPOSE, [self.ints(0, 2, 1, 3)], (n, w, h, c))

    def pad(self) -> None:
        n, h, w, c = self.shape
        pads = np.array([[0, 0], [1, 0], [0, 1], [0, 0]], np.int32)
        self.count += 1
        paddings = self.builder.tensor(f"t{self.count}", pads.shape, np.int32, pads)
        self.step(Code.PAD, [paddings], (n, h + 1, w + 1, c))

    def slice(self) -> None:
        n, h, w, c = self.shape
        shape = (n, max(1, h - 1), max(1, w - 1), c)
        begin = self.ints(0, h - shape[1], 0, 0)
        self.step(Code.SLICE, [begin, self.ints(*shape)], shape)

    def resize(self) -> None:
        n, c = self.shape[0], self.shape[-1]
        size = int(self.rng.integers(1, 5)), int(self.rng.integers(1, 5))
        kinds: list[tuple[Code, Options]] = [
            (Code.RESIZE_BILINEAR, ResizeBilinearOptions()),
            (Code.RESIZE_NEAREST_NEIGHBOR, ResizeNearestNeighborOptions()),
        ]
        code, options = kinds[int(self.rng.integers(2))]
        self.step(code, [self.ints(*size)], (n, *size, c), options)

    def halves(self) -> None:
        """Split the channels, of which the halves have two scales, and compare the halves."""
        n, h, w, c = self.shape
        if c % 2:
            return
        shape = (n, h, w, c // 2)
        first, second = self.tensor(shape), self.tensor(shape)
        axis = self.ints(3)
        self.builder.operator(Code.SPLIT, [axis, self.last], [first, second], SplitOptions(2))
        self.last = first
        self.step(Code.MINIMUM, [second], shape)

    def clamp(self) -> None:
        self.step(Code.RELU6, [], self.shape)

    def relu(self) -> None:
        self.step(Code.RELU, [], self.shape)

    def maximum(self) -> None:
        data = self.rng.integers(-128, 128, (1,)).astype(np.int8)
        self.step(Code.MAXIMUM, [self.tensor((1,), data)], self.shape)

    def rearrange(self) -> None:
        n, h, w, c = self.shape
        if h % 2 or w % 2:
            return
        shape = (n, h // 2, w // 2, c * 4)
        self.step(Code.SPACE_TO_DEPTH, [], shape, BlockOptions(2))

    def repeat(self) -> None:
        n, h, w, c = self.shape
        rows = self.ints(*(int(row) for row in self.rng.integers(0, h, 3)))
        self.step(Code.GATHER, [rows], (n, 3, w, c), GatherOptions(1))

    def convolution(self) -> None:
        n, h, w, c = self.shape
        made = int(self.rng.integers(1, 5))
        data = self.rng.integers(-127, 128, (made, 1, 1, c)).astype(np.int8)
        self.count += 2
        scale = float(np.float32(0.004))
        weights = self.builder.tensor(f"w{self.count}", data.shape, np.int8, data, [scale], [0])
        bias = self.builder.tensor(
            f"b{self.count}", (made,), np.int32, np.zeros(made, np.int32),
            [self.scales[self.last] * scale], [0],
        )  # fmt: skip
        kinds = (TfliteActivation.NONE, TfliteActivation.RELU6)
        options = Conv2DOptions(Padding.SAME, 1, 1, kinds[int(self.rng.integers(2))])
        self.step(Code.CONV_2D, [weights, bias], (n, h, w, made), options)


def unlike_chain(seed: int) -> Case:
    """Draw a chain of some ten operators."""
    rng = np.random.default_rng([seed, 32])
    chain = _Chain(rng, (1, 4, 3, 4))
    first = chain.last
    while chain.count < 30:
        step = str(rng.choice(_STEPS))
        if np.prod(chain.shape) < _LARGEST or step in ("slice", "halves"):
            getattr(chain, step)()
    model = chain.builder.build([first], [chain.last])
    x = rng.integers(-128, 128, (1, 4, 3, 4)).astype(np.int8)
    return Case(f"unlike_chain_{seed}", model, (x,), 1)
