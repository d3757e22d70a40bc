"""Join what the sibling files say of operators that choose boxes."""

from microtir.operators.detection.definition import DEFINITIONS
from microtir.operators.detection.formula import FORMULAS
from microtir.operators.detection.meaning import MEANINGS
from microtir.operators.detection.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
