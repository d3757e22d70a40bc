"""`python -m scripts.models.audio FILE`: a keyword spotter from raw samples to decisions.

Each run takes a hop of samples at 16 kHz.  The features are those of the usual front end of
microcontrollers, by the operators of tflite-micro's Signal library: overlapping frames, a window, a
spectrum, the energies of 40 bands, noise reduced, gain controlled, logarithms.  Four frames of
features at a time go to a small dense network, whose weights are random.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from flatbuffers import flexbuffers

from microtir.operators.common.tflite_schema import BuiltinOperator, TfliteActivation
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.operators.movement.tflite import ReshapeOptions
from microtir.operators.softmax.tflite import SoftmaxOptions
from microtir.writers.tflite import TfliteBuilder

Code = BuiltinOperator
Array = npt.NDArray[Any]

RATE, FRAME, HOP, LENGTH = 16_000, 480, 320, 512
CHANNELS, LOWEST, HIGHEST = 40, 125.0, 7500.0  # of the filter bank, from and to in Hz
CONTEXT = 3  # frames before the one that has come
CLASSES, HIDDEN = 4, 24
_WEIGHT_BITS, _WINDOW_BITS = 12, 12
_SMOOTHING_BITS, _NOISE_BITS = 10, 14
_GAIN_BITS, _RATIO_BITS = 21, 12
_FEATURE_SCALE = 1 / 64  # of a natural logarithm
_INT16 = 7  # the type that transforms are told


def spotter(seed: int = 0) -> bytes:
    """Return the model file.

    Args:
        seed: of the weights of the network.
    """
    model = _Model(np.random.default_rng(seed))
    samples = model.tensor("samples", (1, HOP), np.int16)
    features = model.features(samples)
    return model.builder.build([samples], [model.network(features)])


def mel(frequency: float) -> float:
    """Return the pitch of a frequency in Hz."""
    return 1127.0 * math.log1p(frequency / 700.0)


def bands() -> tuple[Array, Array, Array, Array]:
    """Return weights of all bands, then of each its first frequency, first weight and width.

    A band lies between the middles of two channels: near the first of them it counts for that one,
    near the second for the other.
    """
    ends = np.linspace(mel(LOWEST), mel(HIGHEST), CHANNELS + 2)
    pitches = np.array([mel(k * RATE / LENGTH) for k in range(LENGTH // 2 + 1)])
    weights: list[int] = []
    starts, firsts, widths = [], [], []
    for low, high in pairwise(ends):
        chosen = np.flatnonzero((pitches >= low) & (pitches < high))
        starts.append(int(chosen[0]) if len(chosen) else 0)
        firsts.append(len(weights))
        widths.append(len(chosen))
        parts = (high - pitches[chosen]) / (high - low)
        weights += [round(float(part) * (1 << _WEIGHT_BITS)) for part in parts]
    return tuple(np.array(n, np.int16) for n in (weights, starts, firsts, widths))  # type: ignore[return-value]  # four


def gains(strength: float = 0.95, offset: float = 80.0) -> Array:
    """Return what each power of 2 of the noise is multiplied by, as polynomials of degree 2.

    The gain is (noise + offset)^-strength; three points of each interval lie on it.
    """
    noise_bits = _SMOOTHING_BITS - _correction_bits()

    def gain(noise: int) -> int:
        exact: float = (noise / (1 << noise_bits) + offset) ** -strength
        return min(math.floor(exact * (1 << _GAIN_BITS) + 0.5), (1 << 15) - 1)

    table = [gain(0), gain(1)]
    for interval in range(2, 33):
        first = 1 << interval - 1
        points = gain(first), gain(first + (first >> 1)), gain(min(2 * first, (1 << 32) - 1))
        middle, last = points[1] - points[0], points[2] - points[0]
        slope = 4 * middle - last
        table += [points[0], slope, last - slope, 0]
    return np.array(table[:125], np.int16)


def _correction_bits() -> int:
    """Return by how many bits energies are too small once they are roots."""
    return LENGTH.bit_length() - 1 - _WEIGHT_BITS // 2


@dataclass
class _Model:
    """A model while it is written."""

    rng: np.random.Generator
    builder: TfliteBuilder = field(default_factory=TfliteBuilder)

    def tensor(
        self, name: str, shape: Sequence[int], dtype: npt.DTypeLike, scale: float | None = None
    ) -> int:
        """Add a tensor, with a zero point of 0 where it has a scale."""
        return self.builder.tensor(name, shape, dtype, scales=None if scale is None else [scale])

    def constant(self, name: str, data: Array, scale: float | None = None) -> int:
        """Add a constant."""
        scales = None if scale is None else [scale]
        return self.builder.tensor(name, data.shape, data.dtype, data, scales)

    def signal(
        self, code: str, options: Mapping[str, Any], inputs: Sequence[int], *results: int
    ) -> None:
        """Add an operator of the Signal library."""
        packed = bytes(flexbuffers.Dumps(dict(options))) if options else b""
        self.builder.custom_operator(code, inputs, results, packed)

    def features(self, samples: int) -> int:
        """Add the front end; return the features of the last frames."""
        frame, valid = self.tensor("frame", (1, 1, FRAME), np.int16), self.tensor("valid", (), bool)
        options = {"frame_size": FRAME, "frame_step": HOP, "prefill": True}
        self.signal("SignalFramer", options, [samples], frame, valid)
        energies, scale = self.spectrum(frame)
        channels = self.channels(energies, scale)
        stack = self.tensor("stack", ((CONTEXT + 1) * CHANNELS,), np.int16, _FEATURE_SCALE)
        due = self.tensor("due", (), bool)
        options = {
            "num_channels": CHANNELS,
            "stacker_left_context": CONTEXT,
            "stacker_right_context": 0,
            "stacker_step": 1,
        }
        self.signal("SignalStacker", options, [channels], stack, due)
        return stack

    def spectrum(self, frame: int) -> tuple[int, int]:
        """Add window and transform; return energies, and by how many bits samples were shifted."""
        turns = 2 * np.pi * (np.arange(FRAME) + 0.5) / FRAME
        hann = np.rint((0.5 - 0.5 * np.cos(turns)) * (1 << _WINDOW_BITS)).astype(np.int16)
        shaped = self.tensor("shaped", (1, 1, FRAME), np.int16)
        window = self.constant("window", hann)
        self.signal("SignalWindow", {"shift": _WINDOW_BITS}, [frame, window], shaped)
        line = self.tensor("line", (FRAME,), np.int16)
        extents = self.constant("line_shape", np.array([FRAME], np.int32))
        self.builder.operator(Code.RESHAPE, [shaped, extents], [line], ReshapeOptions((FRAME,)))
        scaled, bits = self.tensor("scaled", (FRAME,), np.int16), self.tensor("bits", (), np.int32)
        self.signal("SignalFftAutoScale", {}, [line], scaled, bits)
        spectrum = self.tensor("spectrum", (LENGTH + 2,), np.int16)
        options = {"T": _INT16, "fft_length": LENGTH}
        self.signal("SignalRfft", options, [scaled], spectrum)
        energies = self.tensor("energies", (LENGTH // 2 + 1,), np.uint32)
        options = {"start_index": 0, "end_index": LENGTH // 2 + 1}
        self.signal("SignalEnergy", options, [spectrum], energies)
        return energies, bits

    def channels(self, energies: int, bits: int) -> int:
        """Add the filter bank and what follows; return logarithms."""
        weights, starts, firsts, widths = bands()
        rests = ((1 << _WEIGHT_BITS) - weights).astype(np.int16)
        named = {"weights": weights, "rests": rests, "starts": starts, "firsts": firsts}
        tables = [self.constant(name, data) for name, data in {**named, "widths": widths}.items()]
        squares = self.tensor("squares", (CHANNELS,), np.uint64)
        self.signal("SignalFilterBank", {"num_channels": CHANNELS}, [energies, *tables], squares)
        roots, clean, noise, even = (
            self.tensor(name, (CHANNELS,), np.uint32)
            for name in ("roots", "clean", "noise", "even")
        )
        self.signal("SignalFilterBankSquareRoot", {}, [squares, bits], roots)
        one = 1 << _NOISE_BITS
        options = {
            "alternate_one_minus_smoothing": one - round(0.06 * one),
            "alternate_smoothing": round(0.06 * one),
            "clamping": False,
            "min_signal_remaining": round(0.05 * one),
            "num_channels": CHANNELS,
            "one_minus_smoothing": one - round(0.025 * one),
            "smoothing": round(0.025 * one),
            "smoothing_bits": _SMOOTHING_BITS,
            "spectral_subtraction_bits": _NOISE_BITS,
        }
        self.signal("SignalFilterBankSpectralSubtraction", options, [roots], clean, noise)
        shift = _GAIN_BITS - _correction_bits() - _RATIO_BITS
        table = self.constant("gains", gains())
        self.signal("SignalPCAN", {"snr_shift": shift}, [clean, noise, table], even)
        logs = self.tensor("logs", (CHANNELS,), np.int16)
        options = {"input_correction_bits": _correction_bits(), "output_scale": 64}
        self.signal("SignalFilterBankLog", options, [even], logs)
        return logs

    def network(self, features: int) -> int:
        """Add two dense layers and a softmax; return what it is sure of."""
        size = (CONTEXT + 1) * CHANNELS
        row = self.tensor("row", (1, size), np.int16, _FEATURE_SCALE)
        extents = self.constant("row_shape", np.array([1, size], np.int32))
        self.builder.operator(Code.RESHAPE, [features, extents], [row], ReshapeOptions((1, size)))
        x, scale = self.tensor("features", (1, size), np.int8, 1 / 8), 1 / 8
        self.builder.operator(Code.QUANTIZE, [row], [x])
        x = self.dense("hidden", x, (HIDDEN, size), scale, 0.25, TfliteActivation.RELU)
        x = self.dense("scores", x, (CLASSES, HIDDEN), 0.25, 0.125, TfliteActivation.NONE)
        y = self.builder.tensor("y", (1, CLASSES), np.int8, None, [1 / 256], [-128])
        self.builder.operator(Code.SOFTMAX, [x], [y], SoftmaxOptions(1.0))
        return y

    def dense(
        self,
        name: str,
        x: int,
        shape: tuple[int, int],
        scale: float,
        result: float,
        activation: TfliteActivation,
    ) -> int:
        """Add a dense layer of int8 with random weights; return its output."""
        units, _ = shape
        weight = 0.01
        weights = self.rng.integers(-127, 128, shape).astype(np.int8)
        biases = self.rng.integers(-2000, 2001, units).astype(np.int32)
        w = self.constant(f"{name}_weights", weights, weight)
        b = self.constant(f"{name}_bias", biases, scale * weight)
        y = self.tensor(name, (1, units), np.int8, result)
        self.builder.operator(
            Code.FULLY_CONNECTED, [x, w, b], [y], FullyConnectedOptions(activation)
        )
        return y


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the model."""
    parser = argparse.ArgumentParser(description="Write a keyword spotter that takes raw samples.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", type=int, default=0, help="of the random weights")
    options = parser.parse_args(arguments)
    options.file.write_bytes(spotter(options.seed))


if __name__ == "__main__":
    main()
