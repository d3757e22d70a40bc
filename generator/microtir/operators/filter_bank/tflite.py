"""Read tflite-micro's operators that make features of spectra."""

from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import TensorType
from microtir.operators.common import tflite_operands
from microtir.operators.common.tflite_flexbuffer import CustomOptions
from microtir.operators.filter_bank import definition


def filter_bank(operands: tflite_operands.Operands) -> tflite_operands.Converted:
    """Read energies, weights and bands, which are constants."""
    for index in range(1, 6):
        if not operands.input(index).is_constant:
            raise operands.unsupported(
                f"input {index} is computed",
                "constant weights and bands",
                "convert the model with the weights and bands of its filter bank as constants",
            )
    op = definition.FilterBank(CustomOptions.of(operands).positive("num_channels"))
    return tflite_operands.Converted(op, operands.present)


def spectral_subtraction(operands: tflite_operands.Operands) -> tflite_operands.Converted:
    """Read a signal; noise begins with zeros."""
    options, x = CustomOptions.of(operands), operands.input(0)
    channels = options.positive("num_channels")
    if x.shape != (channels,):
        raise operands.malformed(f"its input has the shape {x.shape}", f"({channels},)")
    op = definition.SpectralSubtraction(
        definition.Smoothing(options.natural("smoothing"), options.natural("one_minus_smoothing")),
        definition.Smoothing(
            options.natural("alternate_smoothing"), options.natural("alternate_one_minus_smoothing")
        ),
        options.natural("min_signal_remaining"),
        options.natural("spectral_subtraction_bits", most=63),
        options.natural("smoothing_bits", most=31),
        bool(options.integer("clamping")),
    )
    noise = tflite_operands.Memory(
        "noise", TensorType(x.shape, DType.UINT32), np.zeros(x.shape, np.uint32)
    )
    return tflite_operands.Converted(op, operands.present, memory=(noise,))


def pcan(operands: tflite_operands.Operands) -> tflite_operands.Converted:
    """Read a signal, noise and a table of gains."""
    options = CustomOptions.of(operands)
    return tflite_operands.Converted(
        definition.Pcan(options.natural("snr_shift", most=63)), operands.present
    )


def filter_bank_log(operands: tflite_operands.Operands) -> tflite_operands.Converted:
    """Read a signal."""
    options = CustomOptions.of(operands)
    shift = options.natural("input_correction_bits", most=31)
    return tflite_operands.Converted(
        definition.FilterBankLog(shift, options.natural("output_scale")), operands.present
    )


READERS = (
    tflite_operands.TfliteReader(
        definition.FilterBank, "SignalFilterBank", filter_bank, inputs=(6, 6)
    ),
    tflite_operands.TfliteReader(
        definition.SquareRoot,
        "SignalFilterBankSquareRoot",
        tflite_operands.without_attributes(definition.SquareRoot()),
        inputs=(2, 2),
    ),
    tflite_operands.TfliteReader(
        definition.SpectralSubtraction,
        "SignalFilterBankSpectralSubtraction",
        spectral_subtraction,
        outputs=2,
    ),
    tflite_operands.TfliteReader(definition.Pcan, "SignalPCAN", pcan, inputs=(3, 3)),
    tflite_operands.TfliteReader(definition.FilterBankLog, "SignalFilterBankLog", filter_bank_log),
)
