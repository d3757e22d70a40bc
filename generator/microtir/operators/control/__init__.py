"""Join what is known of the operators that say in which order others run, and how often."""

from microtir.operators.common.formula import WrittenFunction
from microtir.operators.control import definition as control
from microtir.operators.control import formula, meaning
from microtir.operators.record import join

RECORDS = join(
    control.DEFINITIONS,
    {
        control.Repeat: (meaning.unchanged, None),
        control.Guard: (meaning.unchanged, None),
        control.EndRepeat: (meaning.end_repeat, None),
        control.Then: (meaning.unchanged, None),
        control.Otherwise: (meaning.unchanged, None),
        control.EndIf: (meaning.end_if, None),
        control.PutItem: (meaning.put_item, WrittenFunction(formula.put_item)),
    },
)
