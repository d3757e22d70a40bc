"""Read tflite-micro's operators between samples and spectra."""

from __future__ import annotations

from microtir.operators.common import tflite_flexbuffer, tflite_operands
from microtir.operators.spectrum.definition import AutoScale, Energy, Irfft, Rfft

_LONGEST = 1 << 16
"""Longest transform; tables of longer ones would exceed a microcontroller's memory."""


def _length(operands: tflite_operands.Operands) -> int:
    """Return the length of a transform of the input's type."""
    options = tflite_flexbuffer.CustomOptions.of(operands)
    options.check_type()
    return options.natural("fft_length", 4, _LONGEST)


def rfft(operands: tflite_operands.Operands) -> tflite_operands.Converted:
    """Read samples."""
    return tflite_operands.Converted(Rfft(_length(operands)), operands.present)


def irfft(operands: tflite_operands.Operands) -> tflite_operands.Converted:
    """Read a spectrum."""
    return tflite_operands.Converted(Irfft(_length(operands)), operands.present)


def energy(operands: tflite_operands.Operands) -> tflite_operands.Converted:
    """Read a spectrum and a range of its frequencies."""
    options = tflite_flexbuffer.CustomOptions.of(operands)
    op = Energy(options.natural("start_index"), options.natural("end_index"))
    return tflite_operands.Converted(op, operands.present)


READERS = (
    tflite_operands.TfliteReader(
        AutoScale, "SignalFftAutoScale", tflite_operands.without_attributes(AutoScale()), outputs=2
    ),
    tflite_operands.TfliteReader(Rfft, "SignalRfft", rfft),
    tflite_operands.TfliteReader(Irfft, "SignalIrfft", irfft),
    tflite_operands.TfliteReader(Energy, "SignalEnergy", energy),
)
