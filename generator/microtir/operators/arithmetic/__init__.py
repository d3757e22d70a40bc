"""Join what the sibling files say of element-wise operators of two inputs."""

from microtir.operators.arithmetic.definition import DEFINITIONS
from microtir.operators.arithmetic.formula import FORMULAS
from microtir.operators.arithmetic.meaning import MEANINGS
from microtir.operators.arithmetic.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
