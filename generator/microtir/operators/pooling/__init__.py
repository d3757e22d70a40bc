"""Join what the sibling files say of pooling."""

from microtir.operators.common.formula import Formula
from microtir.operators.pooling import definition as pooling
from microtir.operators.pooling import formula, meaning, tflite
from microtir.operators.record import join

RECORDS = join(
    pooling.DEFINITIONS,
    {
        pooling.AveragePool2D: (
            meaning.average_pool_2d,
            Formula(formula.average_pool, formula.row_window),
        ),
        pooling.MaxPool2D: (
            meaning.max_pool_2d,
            Formula(formula.max_pool, formula.row_window),
        ),
        pooling.L2Pool2D: (
            meaning.l2_pool_2d,
            Formula(formula.l2_pool, formula.row_window),
        ),
    },
    tflite.READERS,
)
