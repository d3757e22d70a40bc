"""Join what the sibling files say of products of matrices."""

from microtir.operators.matmul.definition import DEFINITIONS
from microtir.operators.matmul.formula import FORMULAS
from microtir.operators.matmul.meaning import MEANINGS
from microtir.operators.matmul.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
