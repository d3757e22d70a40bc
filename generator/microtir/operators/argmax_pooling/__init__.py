"""Join what the sibling files say of pooling that keeps where the maxima are."""

from microtir.operators.argmax_pooling.definition import DEFINITIONS
from microtir.operators.argmax_pooling.formula import FORMULAS
from microtir.operators.argmax_pooling.meaning import MEANINGS
from microtir.operators.argmax_pooling.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
