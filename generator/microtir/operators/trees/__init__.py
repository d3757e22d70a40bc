"""Join what the sibling files say of ensembles of decision trees."""

from microtir.operators.common.formula import WrittenFunction
from microtir.operators.record import join
from microtir.operators.trees import definition as trees
from microtir.operators.trees import formula, meaning

RECORDS = join(
    trees.DEFINITIONS,
    {
        trees.TreeEnsemble: (
            meaning.tree_ensemble,
            WrittenFunction(formula.tree_ensemble, formula.scratch_bytes, formula.cost),
        ),
    },
)
