"""Join what the sibling files say of transposed convolutions."""

from microtir.operators.common.formula import Formula, whole
from microtir.operators.record import join
from microtir.operators.transposed_convolution import definition as transposed_convolution
from microtir.operators.transposed_convolution import formula, meaning, tflite

RECORDS = join(
    transposed_convolution.DEFINITIONS,
    {
        transposed_convolution.TransposeConv: (
            meaning.transpose_conv,
            Formula(formula.transpose_conv, whole),
        ),
    },
    tflite.READERS,
)
