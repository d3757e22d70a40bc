"""Join what the sibling files say of L2_NORMALIZATION."""

from microtir.operators.normalization.definition import DEFINITIONS
from microtir.operators.normalization.formula import FORMULAS
from microtir.operators.normalization.meaning import MEANINGS
from microtir.operators.normalization.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
