"""Join what the sibling files say of products of matrices."""

from microtir.operators.common.formula import Formula, whole
from microtir.operators.matmul import definition as matmul
from microtir.operators.matmul import formula, meaning, tflite
from microtir.operators.record import join

RECORDS = join(
    matmul.DEFINITIONS,
    {matmul.BatchMatmul: (meaning.batch_matmul, Formula(formula.batch_matmul, whole))},
    tflite.READERS,
)
