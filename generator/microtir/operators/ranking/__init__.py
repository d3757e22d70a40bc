"""Join what the sibling files say of operators that put values in order."""

from microtir.operators.common.formula import WrittenFunction
from microtir.operators.ranking import definition as ranking
from microtir.operators.ranking import formula, meaning, tflite
from microtir.operators.record import join

RECORDS = join(
    ranking.DEFINITIONS,
    {
        ranking.TopK: (meaning.top_k, WrittenFunction(formula.top_k, formula.top_k_bytes)),
    },
    tflite.READERS,
)
