"""Join what the sibling files say of recurrent layers."""

from microtir.operators.record import join
from microtir.operators.recurrent.definition import DEFINITIONS
from microtir.operators.recurrent.formula import FORMULAS
from microtir.operators.recurrent.meaning import MEANINGS
from microtir.operators.recurrent.tflite import READERS

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
