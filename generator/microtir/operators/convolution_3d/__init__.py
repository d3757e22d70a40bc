"""Join what the sibling files say of convolutions over volumes."""

from microtir.operators.common.formula import Formula, whole
from microtir.operators.convolution_3d import definition as convolution_3d
from microtir.operators.convolution_3d import formula, meaning, tflite
from microtir.operators.record import join

RECORDS = join(
    convolution_3d.DEFINITIONS,
    {convolution_3d.Conv3D: (meaning.conv_3d, Formula(formula.conv_3d, whole))},
    tflite.READERS,
)
