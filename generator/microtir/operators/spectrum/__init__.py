"""Join what the sibling files say of operators between samples and spectra."""

from microtir.operators.record import join
from microtir.operators.spectrum.definition import DEFINITIONS
from microtir.operators.spectrum.formula import FORMULAS
from microtir.operators.spectrum.meaning import MEANINGS
from microtir.operators.spectrum.tflite import READERS

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
