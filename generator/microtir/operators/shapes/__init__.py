"""Join what the sibling files say of operators that compute shapes."""

from microtir.operators.common.formula import Formula, whole
from microtir.operators.record import join
from microtir.operators.shapes import definition as shapes
from microtir.operators.shapes import formula, meaning, tflite

RECORDS = join(
    shapes.DEFINITIONS,
    {
        shapes.ShapeOf: (meaning.shape_of, Formula(formula.shape_of, whole)),
        shapes.RankOf: (meaning.rank_of, Formula(formula.rank_of, whole)),
        shapes.BroadcastArgs: (meaning.broadcast_args, Formula(formula.broadcast_args, whole)),
        shapes.Range: (meaning.range_, Formula(formula.range_, whole)),
    },
    tflite.READERS,
)
