"""Join what the sibling files say of operators that trade axes of blocks for others."""

from microtir.operators.common.formula import Formula, whole
from microtir.operators.rearrangement import definition as rearrangement
from microtir.operators.rearrangement import formula, meaning, tflite
from microtir.operators.record import join

RECORDS = join(
    rearrangement.DEFINITIONS,
    {
        rearrangement.DepthToSpace: (
            meaning.depth_to_space,
            Formula(formula.depth_to_space, whole),
        ),
        rearrangement.SpaceToDepth: (
            meaning.space_to_depth,
            Formula(formula.space_to_depth, whole),
        ),
        rearrangement.SpaceToBatch: (
            meaning.space_to_batch,
            Formula(formula.space_to_batch, whole),
        ),
        rearrangement.BatchToSpace: (
            meaning.batch_to_space,
            Formula(formula.batch_to_space, whole),
        ),
    },
    tflite.READERS,
)
