"""Join what the sibling files say of convolutions."""

from microtir.operators.convolution.definition import DEFINITIONS
from microtir.operators.convolution.formula import FORMULAS
from microtir.operators.convolution.meaning import MEANINGS
from microtir.operators.convolution.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
