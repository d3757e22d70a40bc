"""Join what the sibling files say of conversions between scalar types."""

from microtir.operators.conversion.definition import DEFINITIONS
from microtir.operators.conversion.formula import FORMULAS
from microtir.operators.conversion.meaning import MEANINGS
from microtir.operators.conversion.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
