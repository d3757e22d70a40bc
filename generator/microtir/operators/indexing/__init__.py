"""Join what the sibling files say of operators that are given indices while the model runs."""

from microtir.operators.common.formula import Formula, WrittenFunction, whole
from microtir.operators.indexing import definition as indexing
from microtir.operators.indexing import formula, meaning, tflite
from microtir.operators.record import join

RECORDS = join(
    indexing.DEFINITIONS,
    {
        indexing.Gather: (meaning.gather, Formula(formula.gather, whole)),
        indexing.GatherNd: (meaning.gather_nd, Formula(formula.gather_nd, whole)),
        indexing.ScatterNd: (meaning.scatter_nd, Formula(formula.scatter_nd, whole)),
        indexing.TruePlaces: (
            meaning.true_places,
            WrittenFunction(
                formula.true_places, cost=lambda node: 10 * node.inputs[0].type.elements
            ),
        ),
        indexing.EmbeddingLookup: (
            meaning.embedding_lookup,
            Formula(formula.embedding_lookup, whole),
        ),
        indexing.DynamicUpdateSlice: (
            meaning.dynamic_update_slice,
            Formula(formula.dynamic_update_slice, whole),
        ),
        indexing.PutSlice: (
            meaning.dynamic_update_slice,
            WrittenFunction(formula.put_slice, cost=lambda node: 6 * node.inputs[1].type.elements),
        ),
    },
    tflite.READERS,
)
