"""Join what the sibling files say of operators that pick by conditions."""

from microtir.operators.record import join
from microtir.operators.selection.definition import DEFINITIONS
from microtir.operators.selection.formula import FORMULAS
from microtir.operators.selection.meaning import MEANINGS
from microtir.operators.selection.tflite import READERS

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
