"""Join what the sibling files say of what support vector machines need."""

from microtir.operators.record import join
from microtir.operators.support_vectors.definition import DEFINITIONS
from microtir.operators.support_vectors.formula import FORMULAS
from microtir.operators.support_vectors.meaning import MEANINGS

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, ())
