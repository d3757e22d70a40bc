"""Join what the sibling files say of operators that repeat elements."""

from microtir.operators.common.formula import Formula, whole
from microtir.operators.record import join
from microtir.operators.repetition import definition as repetition
from microtir.operators.repetition import formula, meaning, tflite

RECORDS = join(
    repetition.DEFINITIONS,
    {
        repetition.Tile: (meaning.tile, Formula(formula.tile, whole)),
        repetition.MirrorPad: (meaning.mirror_pad, Formula(formula.mirror_pad, whole)),
    },
    tflite.READERS,
)
