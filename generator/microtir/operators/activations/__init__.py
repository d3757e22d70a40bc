"""Join what the sibling files say of activations."""

from microtir.operators.activations.definition import DEFINITIONS
from microtir.operators.activations.formula import FORMULAS
from microtir.operators.activations.meaning import MEANINGS
from microtir.operators.activations.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
