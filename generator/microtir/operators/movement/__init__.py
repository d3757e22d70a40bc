"""Join what the sibling files say of operators that move elements."""

from microtir.operators.common.formula import Formula, same_row_if, whole
from microtir.operators.movement import definition as movement
from microtir.operators.movement import formula, meaning, tflite
from microtir.operators.record import join

RECORDS = join(
    movement.DEFINITIONS,
    {
        movement.Pad: (meaning.pad, Formula(formula.pad, whole)),
        movement.Concatenation: (meaning.concatenation, Formula(formula.concatenation, whole)),
        movement.Reshape: (meaning.reshape, Formula(formula.copy, whole)),
        movement.Relabel: (meaning.relabel, Formula(formula.copy, whole)),
        movement.Transpose: (meaning.transpose, Formula(formula.transpose, whole)),
        movement.Pack: (meaning.pack, Formula(formula.pack, whole)),
        movement.Split: (meaning.split, Formula(formula.split, whole)),
        movement.Unpack: (meaning.unpack, Formula(formula.unpack, whole)),
        movement.StridedSlice: (
            meaning.strided_slice,
            Formula(formula.strided_slice, same_row_if(formula.slices_within_rows)),
        ),
    },
    tflite.READERS,
)
