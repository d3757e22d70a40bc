"""Join what the sibling files say of conversions between scalar types."""

from microtir.operators.common.formula import Formula, same_row_if
from microtir.operators.conversion import definition as conversion
from microtir.operators.conversion import formula, meaning, tflite
from microtir.operators.record import join

RECORDS = join(
    conversion.DEFINITIONS,
    {
        conversion.Quantize: (meaning.quantize, Formula(formula.quantize)),
        conversion.Dequantize: (
            meaning.dequantize,
            Formula(
                formula.dequantize, same_row_if(lambda node: not conversion.is_per_channel(node))
            ),
        ),
        conversion.CastTo: (meaning.cast_to, Formula(formula.cast)),
        conversion.Tabulated: (meaning.tabulated, None),
    },
    tflite.READERS,
)
