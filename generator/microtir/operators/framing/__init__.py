"""Join what the sibling files say of operators that cut samples into frames and join frames."""

from microtir.operators.common.formula import WrittenFunction
from microtir.operators.framing import definition as framing
from microtir.operators.framing import formula, meaning, tflite
from microtir.operators.record import join

RECORDS = join(
    framing.DEFINITIONS,
    {
        framing.Window: (meaning.window, WrittenFunction(formula.window)),
        framing.Framer: (meaning.framer, WrittenFunction(formula.framer)),
        framing.Stacker: (meaning.stacker, WrittenFunction(formula.stacker)),
        framing.OverlapAdd: (meaning.overlap_add, WrittenFunction(formula.overlap_add)),
        framing.Delay: (meaning.delay, WrittenFunction(formula.delay)),
    },
    tflite.READERS,
)
