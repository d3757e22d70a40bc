"""Join what the sibling files say of layers whose weights have a scale for each block."""

from microtir.operators.block_dense import definition as block_dense
from microtir.operators.block_dense import formula, meaning
from microtir.operators.common.formula import WrittenFunction
from microtir.operators.record import join

RECORDS = join(
    block_dense.DEFINITIONS,
    {
        block_dense.BlockDense: (
            meaning.block_dense,
            WrittenFunction(formula.block_dense, formula.scratch_bytes, formula.cost),
        ),
    },
)
