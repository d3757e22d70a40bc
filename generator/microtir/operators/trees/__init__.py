"""Join what the sibling files say of ensembles of decision trees."""

from microtir.operators.record import join
from microtir.operators.trees.definition import DEFINITIONS
from microtir.operators.trees.formula import FORMULAS
from microtir.operators.trees.meaning import MEANINGS

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, ())
