"""Join what the sibling files say of attention over a cache, and of rotary positions."""

from microtir.operators.attention import definition as attention
from microtir.operators.attention import formula, meaning
from microtir.operators.common.formula import WrittenFunction
from microtir.operators.record import join

RECORDS = join(
    attention.DEFINITIONS,
    {
        attention.RotaryPositions: (
            meaning.rotary_positions,
            WrittenFunction(
                formula.rotary_positions, cost=lambda node: 10 * node.output.type.elements
            ),
        ),
        attention.CachedAttention: (
            meaning.cached_attention,
            WrittenFunction(
                formula.cached_attention, formula.scratch_bytes, formula.attention_cost
            ),
        ),
    },
)
