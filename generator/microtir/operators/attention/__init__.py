"""Join what the sibling files say of attention over a cache, and of rotary positions."""

from microtir.operators.attention.definition import DEFINITIONS
from microtir.operators.attention.formula import FORMULAS
from microtir.operators.attention.meaning import MEANINGS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS)
