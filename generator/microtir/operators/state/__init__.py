"""Join what is known of the operators that keep something from one run to the next."""

from microtir.operators.record import join
from microtir.operators.state.definition import DEFINITIONS
from microtir.operators.state.formula import FORMULAS
from microtir.operators.state.meaning import MEANINGS

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS)
