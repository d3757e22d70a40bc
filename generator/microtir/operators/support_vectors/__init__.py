"""Join what the sibling files say of what support vector machines need."""

from microtir.operators.common import formula as common_formula
from microtir.operators.record import join
from microtir.operators.support_vectors import definition as support_vectors
from microtir.operators.support_vectors import formula, meaning

RECORDS = join(
    support_vectors.DEFINITIONS,
    {
        support_vectors.SquaredDistances: (
            meaning.squared_distances,
            common_formula.Formula(formula.squared_distances, common_formula.whole),
        ),
        support_vectors.PairwiseCoupling: (
            meaning.pairwise_coupling,
            common_formula.WrittenFunction(formula.pairwise_coupling, formula.scratch_bytes),
        ),
    },
)
