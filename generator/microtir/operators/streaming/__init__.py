"""Join what is known of the operators that passes make, for images in bands and rows."""

from microtir.operators.record import join
from microtir.operators.streaming.definition import DEFINITIONS
from microtir.operators.streaming.formula import FORMULAS
from microtir.operators.streaming.meaning import MEANINGS

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS)
