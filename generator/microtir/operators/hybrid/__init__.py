"""Join what the sibling files say of layers whose inputs are quantised while a model runs."""

from microtir.operators.common.formula import Formula, whole
from microtir.operators.hybrid import definition as hybrid
from microtir.operators.hybrid import formula, meaning
from microtir.operators.record import join

RECORDS = join(
    hybrid.DEFINITIONS,
    {
        hybrid.Bounds: (meaning.bounds, Formula(formula.bounds, whole)),
        hybrid.DynamicQuantize: (
            meaning.dynamic_quantize,
            Formula(formula.dynamic_quantize, whole),
        ),
        hybrid.Hybrid: (meaning.hybrid, Formula(formula.hybrid, whole)),
    },
)
