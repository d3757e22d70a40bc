"""Join what the sibling files say of transposed convolutions."""

from microtir.operators.record import join
from microtir.operators.transposed_convolution.definition import DEFINITIONS
from microtir.operators.transposed_convolution.formula import FORMULAS
from microtir.operators.transposed_convolution.meaning import MEANINGS
from microtir.operators.transposed_convolution.tflite import READERS

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
