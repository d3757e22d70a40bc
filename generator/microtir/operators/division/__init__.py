"""Join what the sibling files say of operators that divide."""

from microtir.operators.common.broadcast import ROWS
from microtir.operators.common.formula import Formula
from microtir.operators.division import definition as division
from microtir.operators.division import formula, meaning, tflite
from microtir.operators.record import join

RECORDS = join(
    division.DEFINITIONS,
    {
        division.Div: (meaning.div, Formula(formula.div, ROWS)),
        division.FloorDiv: (meaning.floor_div, Formula(formula.floor_div, ROWS)),
        division.FloorMod: (meaning.floor_mod, Formula(formula.floor_mod, ROWS)),
    },
    tflite.READERS,
)
