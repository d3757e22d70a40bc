"""Join what the sibling files say of operators that make features of spectra."""

from microtir.operators.filter_bank.definition import DEFINITIONS
from microtir.operators.filter_bank.formula import FORMULAS
from microtir.operators.filter_bank.meaning import MEANINGS
from microtir.operators.filter_bank.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
