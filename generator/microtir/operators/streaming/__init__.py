"""Join what is known of the operators that passes make, for images in bands and rows."""

from microtir.operators.common.formula import Formula
from microtir.operators.record import join
from microtir.operators.streaming import definition as streaming
from microtir.operators.streaming import formula, meaning

RECORDS = join(
    streaming.DEFINITIONS,
    {
        streaming.PlaceColumns: (meaning.unchanged, Formula(formula.place_columns)),
        streaming.JoinColumns: (meaning.join_columns, None),
        streaming.ReadRows: (meaning.unchanged, Formula(formula.rows)),
        streaming.WriteRows: (meaning.unchanged, Formula(formula.rows)),
    },
)
