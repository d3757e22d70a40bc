"""Join what the sibling files say of SOFTMAX and LOG_SOFTMAX."""

from microtir.operators.common.formula import Formula
from microtir.operators.record import join
from microtir.operators.softmax import definition as softmax
from microtir.operators.softmax import formula, meaning, tflite

RECORDS = join(
    softmax.DEFINITIONS,
    {
        softmax.Softmax: (meaning.softmax, Formula(formula.softmax)),
        softmax.LogSoftmax: (meaning.log_softmax, Formula(formula.log_softmax)),
    },
    tflite.READERS,
)
