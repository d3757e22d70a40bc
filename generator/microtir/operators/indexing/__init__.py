"""Join what the sibling files say of operators that are given indices while the model runs."""

from microtir.operators.indexing.definition import DEFINITIONS
from microtir.operators.indexing.formula import FORMULAS
from microtir.operators.indexing.meaning import MEANINGS
from microtir.operators.indexing.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
