"""Join what the sibling files say of layers whose inputs are quantised while a model runs."""

from microtir.operators.hybrid.definition import DEFINITIONS
from microtir.operators.hybrid.formula import FORMULAS
from microtir.operators.hybrid.meaning import MEANINGS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS)
