"""Join what the sibling files say of operators that move elements."""

from microtir.operators.common.formula import Formula, same_row_if, whole
from microtir.operators.movement import definition as movement
from microtir.operators.movement import formula, meaning, tflite
from microtir.operators.record import join

RECORDS = join(
    movement.DEFINITIONS,
    {
        movement.Pad: (meaning.pad, Formula(formula.pad, 8, whole)),
        movement.Concatenation: (meaning.concatenation, Formula(formula.concatenation, 6, whole)),
        movement.Reshape: (meaning.reshape, Formula(formula.copy, 4, whole)),
        movement.Relabel: (meaning.relabel, Formula(formula.copy, 4, whole)),
        movement.Transpose: (meaning.transpose, Formula(formula.transpose, 6, whole)),
        movement.Pack: (meaning.pack, Formula(formula.pack, 6, whole)),
        movement.Split: (meaning.split, Formula(formula.split, 6, whole)),
        movement.Unpack: (meaning.unpack, Formula(formula.unpack, 6, whole)),
        movement.StridedSlice: (
            meaning.strided_slice,
            Formula(formula.strided_slice, 6, same_row_if(formula.slices_within_rows)),
        ),
    },
    tflite.READERS,
)
