"""Join what the sibling files say of recurrent layers."""

from microtir.operators.common.formula import Formula, whole
from microtir.operators.record import join
from microtir.operators.recurrent import definition as recurrent
from microtir.operators.recurrent import formula, meaning, tflite

RECORDS = join(
    recurrent.DEFINITIONS,
    {
        recurrent.Svdf: (meaning.svdf, Formula(formula.svdf, whole)),
        recurrent.Lstm: (meaning.lstm, None),
    },
    tflite.READERS,
)
