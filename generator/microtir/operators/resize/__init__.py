"""Join what the sibling files say of the resizing of images."""

from microtir.operators.common.formula import Formula, whole
from microtir.operators.record import join
from microtir.operators.resize import definition as resize
from microtir.operators.resize import formula, meaning, tflite

RECORDS = join(
    resize.DEFINITIONS,
    {
        resize.ResizeNearestNeighbor: (
            meaning.resize_nearest_neighbor,
            Formula(formula.resize_nearest, whole),
        ),
        resize.ResizeBilinear: (
            meaning.resize_bilinear,
            Formula(formula.resize_bilinear, whole),
        ),
    },
    tflite.READERS,
)
