"""Read tflite-micro's operators between samples and spectra."""

from __future__ import annotations

from microtir.operators.common.tflite_flexbuffer import CustomOptions
from microtir.operators.common.tflite_operands import (
    Converted,
    Operands,
    TfliteReader,
    without_attributes,
)
from microtir.operators.spectrum.definition import AutoScale, Energy, Irfft, Rfft

_LONGEST = 1 << 16
"""Longest transform; tables of longer ones would exceed a microcontroller's memory."""


def _length(operands: Operands) -> int:
    """Return the length of a transform of the input's type."""
    options = CustomOptions.of(operands)
    options.check_type()
    return options.natural("fft_length", 4, _LONGEST)


def rfft(operands: Operands) -> Converted:
    """Read samples."""
    return Converted(Rfft(_length(operands)), operands.present)


def irfft(operands: Operands) -> Converted:
    """Read a spectrum."""
    return Converted(Irfft(_length(operands)), operands.present)


def energy(operands: Operands) -> Converted:
    """Read a spectrum and a range of its frequencies."""
    options = CustomOptions.of(operands)
    op = Energy(options.natural("start_index"), options.natural("end_index"))
    return Converted(op, operands.present)


READERS = (
    TfliteReader(AutoScale, "SignalFftAutoScale", without_attributes(AutoScale()), outputs=2),
    TfliteReader(Rfft, "SignalRfft", rfft),
    TfliteReader(Irfft, "SignalIrfft", irfft),
    TfliteReader(Energy, "SignalEnergy", energy),
)
