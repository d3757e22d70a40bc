"""Join what the sibling files say of operators that put values in order."""

from microtir.operators.ranking.definition import DEFINITIONS
from microtir.operators.ranking.formula import FORMULAS
from microtir.operators.ranking.meaning import MEANINGS
from microtir.operators.ranking.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
