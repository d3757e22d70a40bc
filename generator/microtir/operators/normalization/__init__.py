"""Join what the sibling files say of L2_NORMALIZATION."""

from microtir.operators.common.formula import Formula
from microtir.operators.normalization import definition as normalization
from microtir.operators.normalization import formula, meaning, tflite
from microtir.operators.record import join

RECORDS = join(
    normalization.DEFINITIONS,
    {normalization.L2Normalize: (meaning.l2_normalize, Formula(formula.l2_normalize))},
    tflite.READERS,
)
