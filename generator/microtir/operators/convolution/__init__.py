"""Join what the sibling files say of convolutions."""

from microtir.operators.common.formula import Formula
from microtir.operators.convolution import definition as convolution
from microtir.operators.convolution import formula, meaning, tflite
from microtir.operators.record import join

RECORDS = join(
    convolution.DEFINITIONS,
    {
        convolution.Conv2D: (meaning.conv_2d, Formula(formula.convolution, formula.row_window)),
        convolution.DepthwiseConv2D: (
            meaning.depthwise_conv_2d,
            Formula(formula.convolution, formula.row_window),
        ),
    },
    tflite.READERS,
)
