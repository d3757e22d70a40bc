"""The meaning of every graph operator, in numpy.

Quantised operators give exactly the bits of tflite-micro's reference kernels.  Float operators
accumulate and evaluate transcendental functions in double and round to float32 at the end, so
that the result does not depend on an order of summation; a float32 implementation that adds n
products in any order differs by at most about n * 2^-24 times the sum of their magnitudes.

This package knows nothing about how operators are compiled: it is what compiled code is checked
against.
"""

from microtir.rewrite.reference.evaluate import (
    Observer,
    evaluate,
    execute,
    execute_steps,
    known_inputs,
    known_values,
    value_of,
)
from microtir.rewrite.reference.exact import evaluate_exactly, execute_exactly
from microtir.rewrite.reference.images import one_by_one

__all__ = [
    "Observer",
    "evaluate",
    "evaluate_exactly",
    "execute",
    "execute_exactly",
    "execute_steps",
    "known_inputs",
    "known_values",
    "one_by_one",
    "value_of",
]
