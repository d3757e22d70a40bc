"""Join what is known of operators that another compiler has made for an NPU."""

from microtir.operators.npu.definition import DEFINITIONS
from microtir.operators.npu.formula import FORMULAS
from microtir.operators.npu.meaning import MEANINGS
from microtir.operators.npu.tflite import READERS
from microtir.operators.record import join

RECORDS = join(DEFINITIONS, MEANINGS, FORMULAS, READERS)
