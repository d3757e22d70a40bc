"""Join what the sibling files say of the resizing of images."""

from microtir.operators.record import join
from microtir.operators.resize.definition import DEFINITIONS
from microtir.operators.resize.formula import FORMULAS
from microtir.operators.resize.meaning import MEANINGS
from microtir.operators.resize.tflite import READERS

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
