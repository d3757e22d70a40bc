"""Rows of a matrix of options that hold every pair of their values.

They are made as they are needed: the first pair that no row holds yet, then on every other axis the
value that adds most new pairs (as in D. Cohen and others, "The AETG system", 1997), so that the
product of all axes is never listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, product
from typing import TypeAlias

from microtir.errors import ConfigError

Row: TypeAlias = Mapping[str, object]
Pair: TypeAlias = tuple[tuple[str, object], tuple[str, object]]
Axes: TypeAlias = Mapping[str, tuple[object, ...]]


def covering_rows(
    axes: Axes,
    needed: Callable[[Row, frozenset[str]], Row],
    refusal: Callable[[Row], ConfigError | None],
) -> Iterator[tuple[Row, Pair]]:
    """Yield rows until every pair was in one, each with its pair; some are refused.

    Args:
        axes: the values of each option; the first is what it has where nothing is said.
        needed: a row with what the values of some of its axes ask for.
        refusal: why a row is not accepted.
    """
    plain = {name: values[0] for name, values in axes.items()}
    left = {
        ((a, x), (b, y)): None
        for a, b in combinations(axes, 2)
        for x, y in product(axes[a], axes[b])
    }
    while left:
        pair = next(iter(left))
        given = frozenset(name for name, _ in pair)
        row = needed({**plain, **dict(pair)}, given)
        del left[pair]
        if refusal(row) is None:
            for name in axes:
                if name not in given:
                    row = _extended(row, name, axes, left, refusal)
            for found in pairs_of(row):
                left.pop(found, None)
        yield row, pair


def _extended(
    row: Row,
    name: str,
    axes: Axes,
    left: Mapping[Pair, None],
    refusal: Callable[[Row], ConfigError | None],
) -> Row:
    """Return the row with the accepted value of an axis that adds most new pairs."""
    order = {axis: number for number, axis in enumerate(axes)}

    def new_pairs(value: object) -> int:
        one = (name, value)
        return sum(
            ((one, other) if order[name] < order[other[0]] else (other, one)) in left
            for other in row.items()
            if other[0] != name
        )

    for value in sorted(axes[name], key=new_pairs, reverse=True):
        changed = {**row, name: value}
        if value == row[name] or refusal(changed) is None:
            return changed
    return row


def pairs_of(row: Row) -> set[Pair]:
    """Return the pairs of values in a row."""
    return set(combinations(row.items(), 2))
