"""Join what is known of the operators that keep something from one run to the next."""

from microtir.operators.common.formula import Formula, whole
from microtir.operators.record import join
from microtir.operators.state import definition as state
from microtir.operators.state import formula, meaning

RECORDS = join(
    state.DEFINITIONS,
    {
        state.Assign: (meaning.assign, Formula(formula.assign, whole)),
        state.KeepRows: (meaning.rows_from, Formula(formula.rows_from, whole)),
        state.TakeRows: (meaning.rows_from, Formula(formula.rows_from, whole)),
        state.JoinRows: (meaning.join_rows, Formula(formula.join_rows, whole)),
    },
)
