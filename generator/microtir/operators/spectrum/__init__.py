"""Join what the sibling files say of operators between samples and spectra."""

from microtir.operators.common.formula import WrittenFunction
from microtir.operators.record import join
from microtir.operators.spectrum import definition as spectrum
from microtir.operators.spectrum import formula, meaning, tflite

RECORDS = join(
    spectrum.DEFINITIONS,
    {
        spectrum.AutoScale: (meaning.auto_scale, WrittenFunction(formula.auto_scale)),
        spectrum.Rfft: (meaning.rfft, WrittenFunction(formula.rfft)),
        spectrum.Irfft: (meaning.irfft, WrittenFunction(formula.irfft, formula.irfft_bytes)),
        spectrum.Energy: (meaning.energy, WrittenFunction(formula.energy)),
    },
    tflite.READERS,
)
