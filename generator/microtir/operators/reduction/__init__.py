"""Join what the sibling files say of reductions over axes."""

from microtir.operators.record import join
from microtir.operators.reduction.definition import DEFINITIONS
from microtir.operators.reduction.formula import FORMULAS
from microtir.operators.reduction.meaning import MEANINGS
from microtir.operators.reduction.tflite import READERS

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
