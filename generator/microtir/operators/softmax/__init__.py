"""Join what the sibling files say of SOFTMAX and LOG_SOFTMAX."""

from microtir.operators.record import join
from microtir.operators.softmax.definition import DEFINITIONS
from microtir.operators.softmax.formula import FORMULAS
from microtir.operators.softmax.meaning import MEANINGS
from microtir.operators.softmax.tflite import READERS

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
