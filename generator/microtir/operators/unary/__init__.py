"""Join what the sibling files say of functions of one element that are no activations."""

from microtir.operators.record import join
from microtir.operators.unary.definition import DEFINITIONS
from microtir.operators.unary.formula import FORMULAS
from microtir.operators.unary.meaning import MEANINGS
from microtir.operators.unary.tflite import READERS

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
