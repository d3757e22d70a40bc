"""Join what the sibling files say of operators that compute shapes."""

from microtir.operators.record import join
from microtir.operators.shapes.definition import DEFINITIONS
from microtir.operators.shapes.formula import FORMULAS
from microtir.operators.shapes.meaning import MEANINGS
from microtir.operators.shapes.tflite import READERS

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
