"""Join what the sibling files say of fully connected layers."""

from microtir.operators.common.formula import Formula, same_row_if
from microtir.operators.dense import definition as dense
from microtir.operators.dense import formula, meaning, tflite
from microtir.operators.record import join

RECORDS = join(
    dense.DEFINITIONS,
    {
        dense.FullyConnected: (
            meaning.fully_connected,
            Formula(formula.fully_connected, same_row_if(formula.keeps_rows)),
        ),
    },
    tflite.READERS,
)
