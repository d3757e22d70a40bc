"""Define operators that make features of spectra: filter banks, noise reduction, gain, logarithm.

They are those of tflite-micro's Signal library, on integers without a scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node
from microtir.graph.operator import Operator
from microtir.operators.common.quantization import UNUSED
from microtir.operators.common.shapes import Shape, input_shape, require
from microtir.operators.common.types import TypeRule, TypeSignature
from microtir.operators.definition import Definition, Trait


@dataclass(frozen=True, slots=True)
class FilterBank(Operator):
    """SignalFilterBank: energies of overlapping bands of frequencies.

    Inputs: energies of frequencies (N,), weights (W,), weights of the next channel (W,); of each
    band (`channels` + 1) its first frequency, its first weight and its width.  Output
    (`channels`,): what a band gives to its channel, and what the band before gave to the next.
    """

    name: ClassVar[str] = "signal_filter_bank"
    channels: int = 1


@dataclass(frozen=True, slots=True)
class SquareRoot(Operator):
    """SignalFilterBankSquareRoot: rounded square roots, shifted right by the second input."""

    name: ClassVar[str] = "signal_filter_bank_square_root"


class Smoothing(NamedTuple):
    """Weights of a channel's signal and of its noise so far in its new noise."""

    signal: int
    noise: int


@dataclass(frozen=True, slots=True)
class SpectralSubtraction(Operator):
    """SignalFilterBankSpectralSubtraction: the signal of each channel without its noise.

    Inputs: signal (C,), noise so far (C,).  Outputs: the signal, the noise, and what the noise is
    for the next run.  `even` and `odd` are for channels of these numbers, in units of 2^-`bits`, as
    is `least`, the part of the signal that stays at least.  Noise has `more_bits` behind the point.
    """

    name: ClassVar[str] = "signal_filter_bank_spectral_subtraction"
    even: Smoothing = Smoothing(0, 0)
    odd: Smoothing = Smoothing(0, 0)
    least: int = 0
    bits: int = 0
    more_bits: int = 0
    clamps: bool = False  # noise is at most the signal


@dataclass(frozen=True, slots=True)
class Pcan(Operator):
    """SignalPCAN: each channel amplified by what a table says for its noise, then compressed.

    Inputs: signal (C,), noise (C,), and of each power of 2 of the noise a polynomial, in a table of
    125 numbers.  Products are shifted right by `shift`.
    """

    name: ClassVar[str] = "signal_pcan"
    shift: int = 0


@dataclass(frozen=True, slots=True)
class FilterBankLog(Operator):
    """SignalFilterBankLog: `scale` times the natural logarithm, of the input shifted left."""

    name: ClassVar[str] = "signal_filter_bank_log"
    shift: int = 0
    scale: int = 1


# --- bands ----------------------------------------------------------------------------------------


class Bands(NamedTuple):
    """First frequency of each band, the one behind its last, and where its weights begin."""

    first: tuple[int, ...]
    stop: tuple[int, ...]
    weights: tuple[int, ...]


def bands(node: Node) -> Bands:
    """Return the bands of a filter bank with constants; one without a width is nowhere."""
    tables = [tensor.data for tensor in node.inputs[3:6]]
    end = node.attributes(FilterBank).channels + 1
    rows = [[int(n) for n in table[:end]] for table in tables if table is not None]
    all_bands = [(f, f + n, w) if n > 0 else (0, 0, 0) for f, w, n in zip(*rows, strict=True)]
    first, stop, weights = zip(*all_bands, strict=True)
    return Bands(first, stop, weights)


# --- logarithm ------------------------------------------------------------------------------------

LOG_SEGMENTS = 128
LN_2 = 45426  # of 2^16


def log_table() -> Array:
    """Return what log2(1 + x) is above x, in 2^-16, at the ends of the segments from 0 to 1."""
    ends = [i / LOG_SEGMENTS for i in range(LOG_SEGMENTS + 1)]
    return np.array([round((math.log2(1 + x) - x) * 65536) for x in ends], np.uint16)


# --- shapes ---------------------------------------------------------------------------------------

PCAN_ENTRIES = 125


def _filter_bank_shape(node: Node) -> tuple[Shape, ...]:
    op, (frequencies,) = node.attributes(FilterBank), input_shape(node, 0, 1)
    require(op.channels >= 1, f"{op.channels} channels", "1 or more")
    (count,) = input_shape(node, 1, 1)
    for index in range(3, 6):
        (size,) = input_shape(node, index, 1)
        needed = f"{op.channels + 1} or more, of {op.channels} channels"
        require(size > op.channels, f"input {index} describes {size} bands", needed)
    for index in (1, 2):
        require(input_shape(node, index, 1) == (count,), "two numbers of weights", "as many each")
        data = node.inputs[index].data
        legal = "0 or more"
        require(data is None or bool((data >= 0).all()), "a weight below 0", legal)
    if all(tensor.is_constant for tensor in node.inputs[3:6]):
        for first, stop, weight in zip(*bands(node), strict=True):
            span = f"a band of the frequencies {first} to {stop}, with weights from {weight}"
            inside = first >= 0 and stop <= frequencies
            has_weights = 0 <= weight <= count - (stop - first)
            require(inside and has_weights, span, f"{frequencies} frequencies and {count} weights")
    return ((op.channels,),)


def _square_root_shape(node: Node) -> tuple[Shape, ...]:
    input_shape(node, 1, 0)
    return (input_shape(node, 0, 1),)


def _subtraction_shapes(node: Node) -> tuple[Shape, ...]:
    op, shape = node.attributes(SpectralSubtraction), input_shape(node, 0, 1)
    numbers = sorted((*op.even, *op.odd, op.least))
    fits = numbers[0] >= 0 and numbers[-1] <= _I32.max
    require(fits, f"factors {numbers}", "int32 of 0 or more")
    require(0 <= op.bits <= 63, f"factors with {op.bits} bits", "0 to 63")
    require(0 <= op.more_bits <= 31, f"noise with {op.more_bits} bits more", "0 to 31")
    for tensor in node.inputs[1:]:
        require(tensor.shape == shape, f"noise of the shape {tensor.shape}", f"{shape}")
    return (shape, shape, shape)[: len(node.outputs)]


def _pcan_shape(node: Node) -> tuple[Shape, ...]:
    op, shape, (entries,) = node.attributes(Pcan), input_shape(node, 0, 1), input_shape(node, 2, 1)
    noise = input_shape(node, 1, 1)
    require(noise == shape, f"noise of the shape {noise}", f"{shape}")
    require(entries >= PCAN_ENTRIES, f"a table of {entries} numbers", f"{PCAN_ENTRIES} or more")
    require(0 <= op.shift <= 63, f"a shift by {op.shift}", "0 to 63")
    return (shape,)


def _log_shape(node: Node) -> tuple[Shape, ...]:
    op, shape = node.attributes(FilterBankLog), input_shape(node, 0, 1)
    require(0 <= op.shift <= 31, f"a shift by {op.shift}", "0 to 31")
    require(0 <= op.scale <= _I32.max, f"a scale of {op.scale}", "int32 of 0 or more")
    return (shape,)


_I16, _I32, _U32, _U64 = DType.INT16, DType.INT32, DType.UINT32, DType.UINT64

DEFINITIONS = (
    Definition(
        FilterBank,
        TypeRule((TypeSignature((_U32, _I16), _U64),)),
        UNUSED,
        shapes=_filter_bank_shape,
        inputs=(6, 6),
        limits="constant bands; constant weights, none below 0",
    ),
    Definition(
        SquareRoot,
        TypeRule((TypeSignature((_U64, _I32), _U32),)),
        UNUSED,
        shapes=_square_root_shape,
        inputs=(2, 2),
        limits="shifts are clamped to 0 to 31",
    ),
    Definition(
        SpectralSubtraction,
        TypeRule((TypeSignature((_U32,), _U32),)),
        UNUSED,
        shapes=_subtraction_shapes,
        inputs=(1, 2),
        outputs=3,
        traits=frozenset({Trait.KEEPS_LAST}),
    ),
    Definition(
        Pcan,
        TypeRule((TypeSignature((_U32, _U32, _I16), _U32),)),
        UNUSED,
        shapes=_pcan_shape,
        inputs=(3, 3),
        limits=f"a table of {PCAN_ENTRIES} numbers or more",
    ),
    Definition(FilterBankLog, TypeRule((TypeSignature((_U32,), _I16),)), UNUSED, shapes=_log_shape),
)
