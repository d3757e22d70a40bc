"""Join what the sibling files say of cumulation along an axis."""

from microtir.operators.common.formula import Formula, whole
from microtir.operators.cumulation import definition as cumulation
from microtir.operators.cumulation import formula, meaning, tflite
from microtir.operators.record import join

RECORDS = join(
    cumulation.DEFINITIONS,
    {cumulation.Cumsum: (meaning.cumsum, Formula(formula.cumsum, whole))},
    tflite.READERS,
)
