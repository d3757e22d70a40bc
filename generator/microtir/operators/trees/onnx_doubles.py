"""Tell whether classes by trees of doubles are the same where float32 adds up.

Of two sums that are equal in double one may be larger in float32, or the other way around, and then
the label is another.  Where sums are exact, or leaves all give one number, that cannot be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from microtir.graph.ir import Array
from microtir.operators.trees.forest import Item, Leaf

_FRACTION_BITS = 24  # of a float32
_MOST_SHIFT = 64


def keeps_labels(
    items: Sequence[Item], trees: int, base: Sequence[float], targets: int, threshold: float
) -> bool:
    """Return whether float32 gives each row the label that double gives it.

    Args:
        items: nodes and leaves, with their numbers as doubles.
        trees: how many there are.
        base: what is added to the sums of all targets, if anything.
        targets: sums that are compared; a single one with the threshold.
        threshold: above it is the second of two classes.
    """
    leaves = [item.numbers for item in items if isinstance(item, Leaf)]
    numbers = [number for leaf in leaves for _, number in leaf]
    if _are_exact(numbers, trees, base):
        return True
    if base:
        return False
    if trees == 1:
        return all(_is_same(_of_targets(leaf, targets), threshold) for leaf in leaves)
    present = {number for number in numbers if number}
    is_once = all(len({target for target, _ in leaf}) == len(leaf) for leaf in leaves)
    return len(present) == 1 and is_once and _counts_alike(present.pop(), trees, threshold)


def _are_exact(numbers: Sequence[float], trees: int, base: Sequence[float]) -> bool:
    """Return whether all sums are multiples of a power of two that a float32 holds."""
    everything = [*numbers, *base]
    if not all(map(math.isfinite, everything)):
        return False
    largest = trees * max(map(abs, numbers), default=0.0) + max(map(abs, base), default=0.0)
    for shift in range(_MOST_SHIFT):
        if largest * 2.0**shift >= 2.0**_FRACTION_BITS:
            return False
        if all((number * 2.0**shift).is_integer() for number in everything):
            return True
    return False


def _of_targets(leaf: Sequence[tuple[int, float]], targets: int) -> Array:
    """Return what one leaf gives each target."""
    sums = np.zeros(targets)
    for target, number in leaf:
        sums[target] += number
    return sums


def _is_same(sums: Array, threshold: float) -> bool:
    rounded = sums.astype(np.float32)
    if len(sums) == 1:
        return bool((sums[0] > threshold) == (rounded[0] > np.float32(threshold)))
    return int(sums.argmax()) == int(rounded.argmax())


def _counts_alike(number: float, trees: int, threshold: float) -> bool:
    """Return whether sums of one number are as many in both, and above the threshold alike."""
    wide = np.cumsum(np.full(trees, number))
    narrow = np.cumsum(np.full(trees, number, np.float32), dtype=np.float32)
    rises = all((np.diff(sums) * np.sign(number) > 0).all() for sums in (wide, narrow))
    return bool(rises and ((wide > threshold) == (narrow > np.float32(threshold))).all())
