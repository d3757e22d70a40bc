"""Join what the sibling files say of layers whose weights have a scale for each block."""

from microtir.operators.block_dense.definition import DEFINITIONS
from microtir.operators.block_dense.formula import FORMULAS
from microtir.operators.block_dense.meaning import MEANINGS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS)
