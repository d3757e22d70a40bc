"""Join what is known of the operators that say in which order others run, and how often."""

from microtir.operators.control.definition import DEFINITIONS
from microtir.operators.control.formula import FORMULAS
from microtir.operators.control.meaning import MEANINGS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS)
