"""Join what the sibling files say of cumulation along an axis."""

from microtir.operators.cumulation.definition import DEFINITIONS
from microtir.operators.cumulation.formula import FORMULAS
from microtir.operators.cumulation.meaning import MEANINGS
from microtir.operators.cumulation.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
