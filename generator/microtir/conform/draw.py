"""Draws the numbers of a case: extents, zero points, scales, and what tensors hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

from microtir.conform.kind import ACTIVATIONS, Range
from microtir.graph.ir import Array, Quantization
from microtir.operators.common.attributes import Activation


class Style(Enum):
    """A kind of contents of tensors; cases take them in turn."""

    RANDOM = "random values"
    EXTREME = "extreme values"
    SMALL = "small values"  # factors above 1 and shifts to the left
    WIDE = "large biases"  # sums that need 31 bits
    SATURATED = "values of one sign"  # the largest sums of products


_SIGMA = 74.0  # standard deviation of an int8 of any value


@dataclass(frozen=True, slots=True)
class Draw:
    """The numbers of one case, from a generator with a seed.

    Scales of an `exact` case are powers of two, so that many results are halves.
    """

    rng: np.random.Generator
    ranges: Mapping[str, Range]
    style: Style
    exact: bool

    def number(self, name: str, most: int | None = None) -> int:
        """Draw an extent; an end of its range as often as any six others."""
        low, high, step = self.ranges[name]
        if most is not None:
            high = max(low, min(high, most))
        steps = (high - low) // step
        is_largest_sum = self.style is Style.SATURATED and name.startswith("filter")
        at_end = self.rng.random() < 0.15 or is_largest_sum
        return low + step * (steps if at_end else int(self.rng.integers(steps + 1)))

    def activation(self) -> Activation:
        """Draw the clamp that is fused into the operator."""
        return ACTIVATIONS[self.number("activation")]

    def zero_point(self) -> int:
        """Draw a zero point: an end, 0, or any."""
        return int(self.rng.choice([-128, 127, 0, *self.rng.integers(-128, 128, 3)]))

    def scale(self) -> float:
        """Draw a scale of a tensor as a float32 value."""
        return self.stored_scale(2.0 ** self.rng.uniform(-8, -2))

    def stored_scale(self, scale: float) -> float:
        """Return the float32 next to a scale, or the power of two."""
        return float(np.float32(2.0 ** round(np.log2(scale)) if self.exact else scale))

    def quantization(self, scale: float | None = None) -> Quantization:
        """Draw one scale and zero point."""
        return Quantization((self.scale() if scale is None else scale,), (self.zero_point(),))

    def weight_quantization(self, channels: int, axis: int) -> Quantization:
        """Draw symmetric scales, one for all channels or one for each."""
        if not self.number("per_channel"):
            return Quantization((self.scale(),), (0,))
        base = self.scale()
        scales = (base * 2.0 ** self.rng.uniform(-2.5, 2.5, channels)).tolist()
        return Quantization(tuple(map(self.stored_scale, scales)), (0,) * channels, axis)

    def values(self, shape: tuple[int, ...], zero_point: int = 0) -> Array:
        """Draw int8 values in the style of the case."""
        rng = self.rng
        if self.style is Style.EXTREME:
            values = rng.choice([-128, -127, 127], shape)
        elif self.style is Style.SMALL:
            values = zero_point + rng.integers(-2, 3, shape)
        elif self.style is Style.SATURATED:
            values = rng.choice([127 if zero_point < 0 else -128, zero_point], shape, p=[0.9, 0.1])
        else:
            values = rng.integers(-128, 128, shape)
        return np.asarray(np.clip(values, -128, 127), np.int8)

    def weights(self, shape: tuple[int, ...]) -> Array:
        """Draw int8 weights: of one sign in a channel where sums are to be large."""
        if self.style is Style.SATURATED:
            return np.full(shape, self.rng.choice([-127, 127], shape[-1:])).astype(np.int8)
        return self.values(shape)

    def bias(self, channels: int, terms: int) -> Array:
        """Draw int32 biases as large as sums of `terms` products, or as int32 allows."""
        largest = 2**30 if self.style is Style.WIDE else int(2 * self.spread(terms)) + 1
        return self.rng.integers(-largest, largest, channels).astype(np.int32)

    def spread(self, terms: int) -> float:
        """Return about the standard deviation of sums of `terms` products."""
        single = {Style.SMALL: 1.5, Style.EXTREME: 127.0**2, Style.SATURATED: 127.0**2}
        of_one = single.get(self.style, _SIGMA**2)
        return of_one * (terms if self.style is Style.SATURATED else terms**0.5)

    def output_quantization(self, factor: float, spread: float) -> Quantization:
        """Draw the quantisation of outputs that are `factor` times sums of such a spread.

        About one standard deviation fills 20 to 120 of the 256 values.
        """
        wide = 2.0**29 if self.style is Style.WIDE else spread
        return self.quantization(self.stored_scale(factor * wide / self.rng.uniform(20, 120)))
