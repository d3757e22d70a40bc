"""What fails is shrunk, named and kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.attack import shrink
from tests.attack.shrink import attack_and_shrink


def test_shrinking() -> None:
    """Of ten steps the two that matter are left."""
    assert shrink.shrink(range(10), lambda steps: {3, 7} <= set(steps)) == (3, 7)


def test_what_fails_is_named_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the fewest steps, the file their model; what passes says nothing."""
    monkeypatch.setattr(shrink, "REPRODUCERS", tmp_path / "kept")

    def attack(steps: Sequence[int]) -> None:
        assert not {3, 7} <= set(steps)

    attack_and_shrink(range(7), attack, bytes, "graph.x")
    assert not list(tmp_path.iterdir())
    with pytest.raises(AssertionError, match=r"graph\.x fails; .*\(3, 7\)"):
        attack_and_shrink(range(10), attack, bytes, "graph.x")
    assert (tmp_path / "kept" / "graph.x").read_bytes() == b"\3\7"
