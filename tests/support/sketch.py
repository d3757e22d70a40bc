"""What recipes of random models are written with."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from microtir.frontend import from_tflite
from microtir.graph.ir import Graph
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, TfliteActivation
from microtir.writers.tflite import TfliteBuilder

Array: TypeAlias = npt.NDArray[Any]
Shape: TypeAlias = tuple[int, ...]

_ALIKE = 0.6
"""How many of the outputs that take stored integers have the scale of what they take."""


@dataclass(frozen=True)
class Case:
    """A model file of one operator with the arrays to run it on.

    Args:
        name: of the case.
        model: the file.
        inputs: the arrays.
        outputs: how many there are.
        widened: the same model with float weights, for an oracle that takes no others.
    """

    name: str
    model: bytes
    inputs: tuple[Array, ...]
    outputs: int
    widened: bytes | None = None

    @property
    def oracle_model(self) -> bytes:
        """Return the file that an oracle is given."""
        return self.model if self.widened is None else self.widened

    def graph(self) -> Graph:
        """Read the graph of the model as the frontend does."""
        module = from_tflite(self.model, name=self.name)
        assert module.graph is not None
        return module.graph

    def named_inputs(self) -> dict[str, Array]:
        """Return the inputs under the names that they have in the graph."""
        names = [tensor.name for tensor in self.graph().arguments]
        return dict(zip(names, self.inputs, strict=True))


@dataclass(frozen=True)
class Quant:
    """Quantisation of a tensor of a sketch."""

    scale: float
    zero_point: int


class Weights(Enum):
    """Weights of a recipe that draws hybrid models."""

    LIKE_INPUTS = "floats for floats, integers for integers"
    INT8 = "int8 beside floats"
    WIDENED = "the floats that such an int8 stands for"


class Sketch:
    """A model in the making, and the random choices of its recipe."""

    def __init__(
        self,
        name: str,
        operator: str,
        dtype: np.dtype[Any],
        rng: np.random.Generator,
        weights: Weights = Weights.LIKE_INPUTS,
    ) -> None:
        self.name = name
        self.code = BuiltinOperator[operator]
        self.dtype = dtype
        self.rng = rng
        self.kind_of_weights = weights
        self._builder = TfliteBuilder()
        self._inputs: list[int] = []
        self._values: list[Array] = []

    @property
    def is_int8(self) -> bool:
        return self.dtype == np.int8

    @property
    def is_quantised(self) -> bool:
        return self.dtype in (np.int8, np.int16)

    def integer(self, low: int, high: int) -> int:
        """Draw a random integer of [low, high]."""
        return int(self.rng.integers(low, high + 1))

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, *choices: Any) -> Any:
        return choices[self.integer(0, len(choices) - 1)]

    def shape(self, low_rank: int = 1, high_rank: int = 4) -> Shape:
        """Draw a shape of small extents."""
        rank = self.integer(low_rank, high_rank)
        return tuple(self.integer(1, 5) for _ in range(rank))

    def image(self, largest: int = 9) -> Shape:
        """Draw (N, H, W, C), mostly of one image."""
        batch = 2 if self.chance(0.15) else 1
        return (batch, self.integer(1, largest), self.integer(1, largest), self.integer(1, 7))

    def activation(self) -> TfliteActivation:
        return TfliteActivation(self.pick(*[int(a) for a in list(TfliteActivation)[:4]]))

    def scale(self, low: float = 1e-3, high: float = 1.0) -> float:
        """Draw a float32 scale, uniform in its logarithm; sometimes extreme or a power of two."""
        if self.chance(0.1):
            low, high = low * 1e-3, high * 30
        exponent = self.rng.uniform(np.log2(low), np.log2(high))
        return float(np.float32(2.0 ** (round(exponent) if self.chance(0.1) else exponent)))

    def zero_point(self, dtype: npt.DTypeLike = np.int8) -> int:
        """Draw a zero point, often an extreme; int16 and int32 are symmetric."""
        info = np.iinfo(dtype)
        if info.bits > 8:
            return 0
        return int(self.pick(info.min, info.max, (info.min + info.max + 1) // 2,
                             self.integer(info.min, info.max)))  # fmt: skip

    def any_zero_point(self) -> int:
        """Draw a zero point of the sketch's type, in int16, too, where it need not be 0."""
        if self.is_int8:
            return self.zero_point()
        info = np.iinfo(self.dtype)
        return int(self.pick(0, 0, info.min, info.max, self.integer(-99, 99)))

    def quant(self, dtype: npt.DTypeLike = np.int8) -> Quant:
        return Quant(self.scale(), self.zero_point(dtype))

    def taken_as(self, quant: Quant | None) -> Quant | None:
        """Return the quantisation of an output for whose integers those of a tensor are taken.

        Operators that move elements copy them as they are stored, whatever both stand for.  The
        draws behind are the same whether the two differ or not.
        """
        if quant is None:
            return None
        rng = np.random.default_rng([zlib.crc32(self.name.encode())])
        if rng.random() < _ALIKE:
            return quant
        scale = float(np.float32(quant.scale * rng.choice((0.5, 0.7, 1.01, 1.7))))
        return Quant(scale, int(rng.integers(-128, 127, endpoint=True)))

    def values(self, shape: Shape, dtype: npt.DTypeLike | None = None) -> Array:
        """Draw data: the whole range, the extremes only, or near zero."""
        kind = self.dtype if dtype is None else np.dtype(dtype)
        if kind.kind == "b":
            return self.rng.integers(0, 2, shape).astype(kind)
        if kind.kind == "f":
            spread = self.pick(0.1, 1.0, 1.0, 8.0)
            return np.asarray(self.rng.standard_normal(shape) * spread, kind)
        info = np.iinfo(kind)
        style = self.integer(0, 5)
        if style == 0:
            return np.asarray(self.rng.choice(np.array([info.min, info.max], kind), shape))
        low, high = (max(info.min, -9), 9) if style == 1 else (info.min, info.max)
        return np.asarray(self.rng.integers(low, high, shape, endpoint=True), kind)

    def every_value(self) -> Array:
        """Return all values of an 8-bit type, or the ends and random ones of a wider type."""
        info = np.iinfo(self.dtype)
        if info.bits == 8:
            return np.arange(info.min, info.max + 1).astype(self.dtype)
        drawn = self.rng.integers(info.min, info.max, 250, self.dtype, endpoint=True)
        ends = np.array([info.min, info.min + 1, -1, 0, 1, info.max], self.dtype)
        return np.concatenate([ends, drawn])

    def input(self, shape: Shape, quant: Quant | None = None, values: Array | None = None) -> int:
        """Add an input of the model with random values, quantised if `quant` is given."""
        data = np.asarray(self.values(shape) if values is None else values)
        index = self.tensor(f"input{len(self._inputs)}", shape, data.dtype, quant)
        self._inputs.append(index)
        self._values.append(data)
        return index

    def output(
        self, shape: Shape, quant: Quant | None = None, dtype: npt.DTypeLike | None = None,
        name: str = "output",
    ) -> int:  # fmt: skip
        return self.tensor(name, shape, self.dtype if dtype is None else dtype, quant)

    def tensor(
        self, name: str, shape: Shape, dtype: npt.DTypeLike, quant: Quant | None = None,
        data: Array | None = None, *, is_variable: bool = False,
    ) -> int:  # fmt: skip
        scales = None if quant is None else [quant.scale]
        zeros = None if quant is None else [quant.zero_point]
        return self._builder.tensor(
            name, shape, dtype, data, scales, zeros, is_variable=is_variable
        )

    def variable(self, name: str, shape: Shape, dtype: npt.DTypeLike, quant: Quant | None) -> int:
        """Add a tensor that keeps its value from one run to the next."""
        return self.tensor(name, shape, dtype, quant, is_variable=True)

    def constant(self, name: str, data: Array, quant: Quant | None = None) -> int:
        return self.tensor(name, data.shape, data.dtype, quant, data)

    def ints(self, name: str, *numbers: int) -> int:
        """Add a constant vector of int32: an attribute that the format keeps in a tensor."""
        return self.constant(name, np.array(numbers, np.int32))

    def weights(
        self, data: Array, scales: Sequence[float], axis: int, *, is_int4: bool = False
    ) -> int:
        """Add symmetric int8 or int4 weights with one scale, or one per index of `axis`."""
        per_channel = axis if len(scales) > 1 else None
        zeros = [0] * len(scales)
        dtype = "int4" if is_int4 else data.dtype
        return self._builder.tensor("weights", data.shape, dtype, data, scales, zeros, per_channel)

    def bias(self, data: Array, scales: Sequence[float]) -> int:
        """Add a bias with the scales given."""
        axis = 0 if len(scales) > 1 else None
        zeros = [0] * len(scales)
        return self._builder.tensor("bias", data.shape, data.dtype, data, scales, zeros, axis)

    def finish(
        self,
        inputs: Sequence[int],
        outputs: Sequence[int] | int,
        options: Options | None = None,
        version: int | None = None,
    ) -> Case:
        """Return the case of the sketch's operator applied to these tensors.

        LiteRT's reference kernels compute some options that they are registered in no version for:
        `version` is then an older one.
        """
        results = [outputs] if isinstance(outputs, int) else list(outputs)
        self._builder.operator(self.code, inputs, results, options, version=version)
        model = self._builder.build(self._inputs, results)
        return Case(self.name, model, tuple(self._values), len(results))
