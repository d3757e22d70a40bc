"""Join what the sibling files say of convolutions over volumes."""

from microtir.operators.convolution_3d.definition import DEFINITIONS
from microtir.operators.convolution_3d.formula import FORMULAS
from microtir.operators.convolution_3d.meaning import MEANINGS
from microtir.operators.convolution_3d.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
