"""Read tflite-micro's operators that make features of spectra."""

from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import TensorType
from microtir.operators.common.tflite_flexbuffer import CustomOptions
from microtir.operators.common.tflite_operands import (
    Converted,
    Memory,
    Operands,
    TfliteReader,
    without_attributes,
)
from microtir.operators.filter_bank.definition import (
    FilterBank,
    FilterBankLog,
    Pcan,
    Smoothing,
    SpectralSubtraction,
    SquareRoot,
)


def filter_bank(operands: Operands) -> Converted:
    """Read energies, weights and bands, which are constants."""
    for index in range(1, 6):
        if not operands.input(index).is_constant:
            raise operands.unsupported(
                f"input {index} is computed",
                "constant weights and bands",
                "convert the model with the weights and bands of its filter bank as constants",
            )
    op = FilterBank(CustomOptions.of(operands).positive("num_channels"))
    return Converted(op, operands.present)


def spectral_subtraction(operands: Operands) -> Converted:
    """Read a signal; noise begins with zeros."""
    options, x = CustomOptions.of(operands), operands.input(0)
    channels = options.positive("num_channels")
    if x.shape != (channels,):
        raise operands.malformed(f"its input has the shape {x.shape}", f"({channels},)")
    op = SpectralSubtraction(
        Smoothing(options.natural("smoothing"), options.natural("one_minus_smoothing")),
        Smoothing(
            options.natural("alternate_smoothing"),
            options.natural("alternate_one_minus_smoothing"),
        ),
        options.natural("min_signal_remaining"),
        options.natural("spectral_subtraction_bits", most=63),
        options.natural("smoothing_bits", most=31),
        bool(options.integer("clamping")),
    )
    noise = Memory("noise", TensorType(x.shape, DType.UINT32), np.zeros(x.shape, np.uint32))
    return Converted(op, operands.present, memory=(noise,))


def pcan(operands: Operands) -> Converted:
    """Read a signal, noise and a table of gains."""
    options = CustomOptions.of(operands)
    return Converted(Pcan(options.natural("snr_shift", most=63)), operands.present)


def filter_bank_log(operands: Operands) -> Converted:
    """Read a signal."""
    options = CustomOptions.of(operands)
    shift = options.natural("input_correction_bits", most=31)
    return Converted(FilterBankLog(shift, options.natural("output_scale")), operands.present)


READERS = (
    TfliteReader(FilterBank, "SignalFilterBank", filter_bank, inputs=(6, 6)),
    TfliteReader(
        SquareRoot,
        "SignalFilterBankSquareRoot",
        without_attributes(SquareRoot()),
        inputs=(2, 2),
    ),
    TfliteReader(
        SpectralSubtraction,
        "SignalFilterBankSpectralSubtraction",
        spectral_subtraction,
        outputs=2,
    ),
    TfliteReader(Pcan, "SignalPCAN", pcan, inputs=(3, 3)),
    TfliteReader(FilterBankLog, "SignalFilterBankLog", filter_bank_log),
)
