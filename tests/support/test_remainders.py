"""Thinned layers have what all of them have."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations

from tests.support.dsp_cases import DspCase, cases
from tests.support.remainders import features_of, remainders_of, thinned


def test_no_remainder_of_any_kind_of_layer_is_lost() -> None:
    """A part of the layers has every attribute, remainder and pair of remainders of each kind."""
    every = cases(100)
    kept = thinned(every)
    assert len(kept) < 0.25 * len(every)
    assert {case.name for case in kept} <= {case.name for case in every}

    def shown(some: Sequence[DspCase]) -> set[tuple[Hashable, ...]]:
        return {
            (case.name.rstrip("0123456789"), feature)
            for case in some
            for feature in features_of(case.graph.nodes[0])
        }

    assert shown(kept) == shown(every)
    convolutions = [c.graph.nodes[0] for c in kept if c.name.startswith("conv_")]
    assert {remainders_of(node)["outputs"] for node in convolutions} == {0, 1, 2, 3}
    pairs = {
        pair
        for node in convolutions
        for pair in combinations(remainders_of(node).items(), 2)
        if {name for name, _ in pair} == {"inputs", "outputs"}
    }
    assert len(pairs) == 16
