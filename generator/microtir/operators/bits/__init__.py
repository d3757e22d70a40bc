"""Join what the sibling files say of operators on the bits of integers."""

from microtir.operators.bits.definition import DEFINITIONS
from microtir.operators.bits.formula import FORMULAS
from microtir.operators.bits.meaning import MEANINGS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS)
