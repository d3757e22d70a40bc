"""Estimated instructions of CMSIS-NN's kernels, fitted to layers of models or guessed.

Measured on emulated boards with version 7 of the library and gcc 12 at -O2: Cortex-M3 for plain C,
Cortex-M4 for the DSP extension, Cortex-M55 for Helium.  Additions and softmax were measured on few
of them: where it matters, choose by measurement (`profile --choose-external`).
"""

from __future__ import annotations

from dataclasses import dataclass

from microtir.config import Feature
from microtir.config.target import Target
from microtir.external.interface import Match
from microtir.operators.pooling.definition import Pool2D


@dataclass(frozen=True, slots=True)
class _Price:
    """Tenths of an instruction for each MAC (or element of a window), and for each output."""

    work: int
    output: int


@dataclass(frozen=True, slots=True)
class _Prices:
    """Prices of one kernel, by what the CPU can do."""

    plain: _Price
    dsp: _Price
    mve: _Price

    def of(self, target: Target, work: int, outputs: int) -> int:
        """Return the instructions for so many units of work and outputs."""
        price = self.plain
        if target.has(Feature.MVE):
            price = self.mve
        elif target.has(Feature.DSP):
            price = self.dsp
        return (price.work * work + price.output * outputs) // 10


_POINTWISE = _Prices(_Price(26, 350), _Price(16, 350), _Price(3, 60))
_CONVOLUTION = _Prices(_Price(26, 700), _Price(16, 950), _Price(5, 180))
_DEPTHWISE = _Prices(_Price(65, 250), _Price(50, 250), _Price(16, 70))
_DENSE = _Prices(_Price(30, 760), _Price(21, 540), _Price(4, 200))
_ADD = _Prices(_Price(0, 810), _Price(0, 810), _Price(0, 80))
_POOL = _Prices(_Price(150, 250), _Price(60, 250), _Price(16, 100))
_SOFTMAX = _Prices(_Price(0, 3000), _Price(0, 3000), _Price(0, 3000))


def convolution(match: Match) -> int:
    """Price a convolution by MACs, outputs and patches, which one-pixel windows lack."""
    _, height, width, _ = match.first.inputs[1].shape
    prices = _POINTWISE if height * width == 1 else _CONVOLUTION
    return prices.of(match.target, match.macs, match.output.type.elements)


def depthwise(match: Match) -> int:
    """Price a depthwise convolution by MACs and outputs."""
    return _DEPTHWISE.of(match.target, match.macs, match.output.type.elements)


def dense(match: Match) -> int:
    """Price a dense layer by MACs and outputs."""
    return _DENSE.of(match.target, match.macs, match.output.type.elements)


def add(match: Match) -> int:
    """Price an addition by outputs."""
    return _ADD.of(match.target, 0, match.output.type.elements)


def pool(match: Match) -> int:
    """Price a pool by elements of the windows, and outputs."""
    op = match.first.attributes(Pool2D)
    elements = match.output.type.elements
    return _POOL.of(match.target, elements * op.window[0] * op.window[1], elements)


def softmax(match: Match) -> int:
    """Price a softmax by outputs."""
    return _SOFTMAX.of(match.target, 0, match.output.type.elements)
