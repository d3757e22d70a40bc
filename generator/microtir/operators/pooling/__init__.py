"""Join what the sibling files say of pooling."""

from microtir.operators.pooling.definition import DEFINITIONS
from microtir.operators.pooling.formula import FORMULAS
from microtir.operators.pooling.meaning import MEANINGS
from microtir.operators.pooling.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
