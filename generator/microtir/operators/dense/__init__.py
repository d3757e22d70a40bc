"""Join what the sibling files say of fully connected layers."""

from microtir.operators.dense.definition import DEFINITIONS
from microtir.operators.dense.formula import FORMULAS
from microtir.operators.dense.meaning import MEANINGS
from microtir.operators.dense.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
