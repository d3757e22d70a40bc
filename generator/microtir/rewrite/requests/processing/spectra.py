"""Steps of sound: a window of samples, its power spectrum, and bands of that on the mel scale."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from microtir.config.processing import ProcessingStep, StepKind, Window
from microtir.dtype import DType
from microtir.errors import ConfigError
from microtir.graph.ir import Array, TensorType
from microtir.operators.arithmetic.definition import Mul
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.movement.definition import Reshape
from microtir.operators.reduction.definition import Sum
from microtir.operators.spectrum.definition import Rfft
from microtir.operators.unary.definition import Square
from microtir.rewrite.requests.processing.chain import Chain

_REAL = DType.FLOAT32


@dataclass(frozen=True, slots=True)
class Transform:
    """A power spectrum of `samples`, with zeros behind them up to `length`."""

    samples: int
    length: int

    @staticmethod
    def of(step: ProcessingStep) -> Transform:
        samples = int(step.numbers[0])
        return Transform(samples, int(step.numbers[1]) if len(step.numbers) > 1 else samples)

    @property
    def frequencies(self) -> int:
        return self.length // 2 + 1


def weigh(chain: Chain, step: ProcessingStep) -> None:
    """Weigh the samples of the last axis; periodic, as frames of a spectrum want it."""
    chain.as_float(str(step))
    length, share = chain.value.type.channels, 0.5 if step.window is Window.HANN else 25 / 46
    turns = np.arange(length) * (2 * math.pi / length)
    weights: Array = (share - (1 - share) * np.cos(turns)).astype(np.float32)
    chain.emit(Mul(), str(step), chain.value.type, chain.constant(weights))


def power(chain: Chain, step: ProcessingStep) -> None:
    """Make squares of magnitudes of samples, for frequencies from 0 to half the rate."""
    text, transform = str(step), Transform.of(step)
    chain.as_float(text)
    *outer, _ = chain.value.shape
    chain.emit(Rfft(transform.length), text, TensorType((*outer, transform.length + 2), _REAL))
    pairs = (*outer, transform.frequencies, 2)
    chain.emit(Reshape(), text, TensorType(pairs, _REAL))
    chain.emit(Square(), text, chain.value.type)
    last = (len(outer) + 1,)
    chain.emit(Sum(last), text, TensorType(pairs[:-1], _REAL))


def mel(chain: Chain, step: ProcessingStep, bands: int) -> None:
    """Add frequencies up in triangles that are even on the mel scale.

    The scale is 1127 ln(1 + f / 700), and triangles are straight on it, with a height of 1 and
    nothing of frequency 0, as `tf.signal.linear_to_mel_weight_matrix` defines them.

    Args:
        chain: of a power spectrum.
        step: rate of the samples, and the lowest and highest frequency.
        bands: how many triangles.
    """
    *outer, frequencies = chain.value.shape
    rate = step.numbers[0]
    low, high = step.numbers[1:] if len(step.numbers) > 1 else (0.0, rate / 2)
    if not 0 <= low < high <= rate / 2:
        raise ConfigError(
            f"the step '{step}' has bands from {low:g} to {high:g}",
            where=chain.where,
            legal=f"0 to {rate / 2:g}, half the sample rate, with the lower frequency first",
        )
    edges = np.linspace(_on_mel(low), _on_mel(high), bands + 2)
    places = _on_mel(np.arange(frequencies) * (rate / 2) / (frequencies - 1))[:, None]
    below, top, above = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (places - below) / (top - below), (above - places) / (above - top)
    weights = np.maximum(0.0, np.minimum(rising, falling)).astype(np.float32)
    weights[0] = 0.0
    chain.emit(
        BatchMatmul(), str(step), TensorType((*outer, bands), _REAL), chain.constant(weights)
    )


def _on_mel(frequency: Array | float) -> Array:
    return np.asarray(1127.0 * np.log1p(np.asarray(frequency, np.float64) / 700.0))


def before_spectrum(step: ProcessingStep, length: int | None, where: str) -> int | None:
    """Return the last extent before a step, of that behind it; None: whatever comes first says it.

    Raises:
        ConfigError: the model takes something else than the step gives.
    """
    if step.kind is StepKind.MEL:
        return None
    if step.kind is not StepKind.POWER:
        return length
    transform = Transform.of(step)
    if length not in (None, transform.frequencies):
        raise ConfigError(
            f"the step '{step}' gives {transform.frequencies} frequencies instead of {length}",
            where=where,
            legal=f"another length, or 'mel' after it for a model that takes {length} bands",
        )
    return transform.samples
