"""Join what the sibling files say of pooling that keeps where the maxima are."""

from microtir.operators.argmax_pooling import definition as argmax_pooling
from microtir.operators.argmax_pooling import formula, meaning, tflite
from microtir.operators.common import formula as common_formula
from microtir.operators.record import join

RECORDS = join(
    argmax_pooling.DEFINITIONS,
    {
        argmax_pooling.MaxPoolWithPlaces: (
            meaning.max_pool_with_places,
            common_formula.WrittenFunction(formula.max_pool_with_places),
        ),
        argmax_pooling.MaxUnpool: (
            meaning.max_unpool,
            common_formula.WrittenFunction(formula.max_unpool),
        ),
    },
    tflite.READERS,
)
