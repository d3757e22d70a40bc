"""Thinned layers have what all of them have."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations

import pytest

from tests.support import seeds
from tests.support.dsp_cases import DspCase, cases
from tests.support.remainders import features_of, named_features, remainders_of, thinned


def test_no_remainder_of_any_kind_of_layer_is_lost() -> None:
    """A part of the layers has every attribute, remainder and pair of remainders of each kind."""
    every = cases(100)
    kept = thinned(every, several=1)
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


def test_cases_that_add_little_are_left_to_the_soak(monkeypatch: pytest.MonkeyPatch) -> None:
    """Far fewer have most features, of each kind of layer; in the soak none is lost."""
    every = cases(60)
    monkeypatch.delenv(seeds.VARIABLE, raising=False)
    few = thinned(every)
    monkeypatch.setenv(seeds.VARIABLE, "0")
    kept = thinned(every)
    assert kept[: len(few)] == few and len(few) < 0.8 * len(kept)
    assert kept == thinned(every, several=1)
    shown, wanted = ({f for case in some for f in named_features(case)} for some in (few, kept))
    assert len(shown) > 0.85 * len(wanted)
    assert {kind for kind, *_ in shown} == {kind for kind, *_ in wanted}
