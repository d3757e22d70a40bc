"""Join what the sibling files say of operators that make features of spectra."""

from microtir.operators.common.formula import WrittenFunction
from microtir.operators.filter_bank import definition as filter_bank
from microtir.operators.filter_bank import formula, meaning, tflite
from microtir.operators.record import join

RECORDS = join(
    filter_bank.DEFINITIONS,
    {
        filter_bank.FilterBank: (meaning.filter_bank, WrittenFunction(formula.filter_bank)),
        filter_bank.SquareRoot: (meaning.square_root, WrittenFunction(formula.square_root)),
        filter_bank.SpectralSubtraction: (
            meaning.spectral_subtraction,
            WrittenFunction(formula.spectral_subtraction),
        ),
        filter_bank.Pcan: (meaning.pcan, WrittenFunction(formula.pcan)),
        filter_bank.FilterBankLog: (
            meaning.filter_bank_log,
            WrittenFunction(formula.filter_bank_log),
        ),
    },
    tflite.READERS,
)
