"""Define operators between samples and spectra: Fourier transforms, their scaling, energies.

They are those of tflite-micro's Signal library, whose transforms are KISS FFT's: the even samples
are real parts and the odd ones imaginary parts of half as many complex numbers; these are
transformed in stages of radix 4, 2, 3 or 5; a last step separates the two halves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node
from microtir.graph.operator import Operator
from microtir.operators.common.quantization import UNUSED
from microtir.operators.common.shapes import Shape, input_shape, require
from microtir.operators.common.types import TypeRule, TypeSignature
from microtir.operators.definition import Definition


@dataclass(frozen=True, slots=True)
class AutoScale(Operator):
    """SignalFftAutoScale: samples shifted left as far as the loudest allows, and by how much.

    As tflite-micro has it, -32768 counts as less than any sample that comes behind it.
    """

    name: ClassVar[str] = "signal_fft_auto_scale"


@dataclass(frozen=True, slots=True)
class Rfft(Operator):
    """SignalRfft: the spectrum of real samples, with zeros behind them up to `length`.

    Input: samples (..., N).  Output: (..., `length` + 2), of each frequency the real part and the
    imaginary part.  Integers are divided by `length`, stage by stage; floats are not.
    """

    name: ClassVar[str] = "signal_rfft"
    length: int = 4


@dataclass(frozen=True, slots=True)
class Irfft(Operator):
    """SignalIrfft: the `length` real samples of a spectrum.

    Input: (..., `length` + 2), as `Rfft` gives it.  All types are divided by `length`, integers in
    stages.
    """

    name: ClassVar[str] = "signal_irfft"
    length: int = 4


@dataclass(frozen=True, slots=True)
class Energy(Operator):
    """SignalEnergy: squares of the magnitudes at the frequencies from `start` on, below `end`.

    Input: a spectrum (2 N,).  Output: (N,), 0 at other frequencies.
    """

    name: ClassVar[str] = "signal_energy"
    start: int = 0
    end: int = 0


# --- transforms -----------------------------------------------------------------------------------


class Stage(NamedTuple):
    """A stage of a transform: `blocks` of `radix` groups of `size` numbers, which it combines."""

    radix: int
    size: int
    blocks: int


def stages(count: int) -> tuple[Stage, ...]:
    """Return the stages of a transform of complex numbers, the one that comes last first."""
    all_stages: list[Stage] = []
    radix, rest, blocks = 4, count, 1
    most = math.isqrt(count)
    while True:
        while rest % radix:
            radix = {4: 2, 2: 3}.get(radix, radix + 2)
            if radix > most:
                radix = rest
        rest //= radix
        all_stages.append(Stage(radix, rest, blocks))
        if rest <= 1:
            return tuple(all_stages)
        blocks *= radix


class Numbers(NamedTuple):
    """The fixed-point form of a type: `wide` holds products, `bits` are behind the point."""

    dtype: DType
    wide: DType
    bits: int

    @property
    def one(self) -> int:
        """Return the largest number, which stands for 1."""
        return self.dtype.max


def numbers_of(dtype: DType) -> Numbers:
    """Return the arithmetic of a type; floats have no bits behind the point."""
    if dtype.is_float:
        return Numbers(dtype, dtype, 0)
    wide = DType.INT32 if dtype is DType.INT16 else DType.INT64
    return Numbers(dtype, wide, dtype.bits - 1)


def twiddles(count: int, dtype: DType, *, inverse: bool) -> Array:
    """Return the factors of a transform of complex numbers, (count, 2)."""
    sign = 1.0 if inverse else -1.0
    return _factors(count, dtype, lambda i: sign * (2 * math.pi * i / count))


def half_twiddles(count: int, dtype: DType, *, inverse: bool) -> Array:
    """Return the factors that separate or join even and odd samples, (count // 2, 2)."""
    sign = 1.0 if inverse else -1.0
    return _factors(count // 2, dtype, lambda i: sign * (math.pi * ((i + 1) / count + 0.5)))


def _factors(count: int, dtype: DType, phase: Callable[[int], float]) -> Array:
    real = [(math.cos(phase(i)), math.sin(phase(i))) for i in range(count)]
    if dtype.is_float:
        return np.array(real, np.float32).reshape(count, 2)
    one = dtype.max
    stored = [[math.floor(0.5 + one * part) for part in pair] for pair in real]
    return np.array(stored, dtype.value).reshape(count, 2)


# --- shapes ---------------------------------------------------------------------------------------


def _check_length(length: int) -> None:
    """Check that there is a butterfly for each stage; tflite-micro ends its program at others."""
    rest = length // 2
    for radix in (2, 3, 5):
        while rest % radix == 0 and rest > 0:
            rest //= radix
    is_known = length >= 4 and length % 2 == 0 and rest == 1
    require(is_known, f"a transform of {length} numbers", _LENGTHS)


def _rfft_shape(node: Node) -> tuple[Shape, ...]:
    op, shape = node.attributes(Rfft), node.inputs[0].shape
    _check_length(op.length)
    legal = f"1 to {op.length} in the last dimension"
    fits = len(shape) >= 1 and shape[-1] <= op.length
    require(fits, f"samples of the shape {shape}", legal)
    return ((*shape[:-1], op.length + 2),)


def _irfft_shape(node: Node) -> tuple[Shape, ...]:
    op, shape = node.attributes(Irfft), node.inputs[0].shape
    _check_length(op.length)
    fits = len(shape) >= 1 and shape[-1] == op.length + 2
    require(fits, f"a spectrum of the shape {shape}", f"{op.length + 2} in the last dimension")
    return ((*shape[:-1], op.length),)


def _energy_shape(node: Node) -> tuple[Shape, ...]:
    op, (parts,) = node.attributes(Energy), input_shape(node, 0, 1)
    require(parts % 2 == 0, f"a spectrum of {parts} parts", "an even number")
    span = f"frequencies {op.start} to {op.end} of {parts // 2}"
    require(0 <= op.start <= parts // 2 and op.end <= parts // 2, span, "those of the spectrum")
    return ((parts // 2,),)


def _auto_scale_shapes(node: Node) -> tuple[Shape, ...]:
    return input_shape(node, 0, 1), ()


_F32, _I16, _I32, _U32 = DType.FLOAT32, DType.INT16, DType.INT32, DType.UINT32
_LENGTHS = "an even length of 4 or more without prime factors above 5"
_TRANSFORMED = TypeRule(tuple(TypeSignature((dtype,), dtype) for dtype in (_I16, _I32, _F32)))

DEFINITIONS = (
    Definition(
        AutoScale,
        TypeRule((TypeSignature((_I16,), _I16, (_I32,)),)),
        UNUSED,
        shapes=_auto_scale_shapes,
        outputs=2,
    ),
    Definition(Rfft, _TRANSFORMED, UNUSED, shapes=_rfft_shape, limits=_LENGTHS),
    Definition(Irfft, _TRANSFORMED, UNUSED, shapes=_irfft_shape, limits=_LENGTHS),
    Definition(
        Energy,
        TypeRule((TypeSignature((_I16,), _U32),)),
        UNUSED,
        shapes=_energy_shape,
        limits="0 at frequencies outside of the range",
    ),
)
