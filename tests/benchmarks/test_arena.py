"""RAM beside tflite-micro's arena: recorded, and no more now."""

from __future__ import annotations

import pytest

from benchmarks import arena
from benchmarks.boards import TOLERANCE
from microtir.boards import load_board

_LARGER = ("kws, whole", "kws, pushes of 2 frames")
"""The first at speed only; rings of a network that pads in time hold nearly all rows."""


def test_every_model_is_recorded_and_takes_less_than_the_arena() -> None:
    """Where tflite-micro runs it; all but those whose page says why not."""
    recorded = arena.read_recorded()
    assert set(recorded) == set(arena.WAYS)
    for name, goals in recorded.items():
        assert tuple(goals) == arena.GOALS
        for price in goals.values():
            assert name in _LARGER or price.arena == 0 or price.ram < price.arena


@pytest.mark.compiler_version
def test_ram_of_an_lstm_did_not_grow() -> None:
    """One of the recorded models is measured again."""
    name, goal = "LSTM, int8", "balanced"
    before = arena.read_recorded()[name][goal]
    now = arena.price(arena.WAYS[name], goal, load_board(arena.BOARD))
    assert now.arena == before.arena
    assert now.ram <= before.ram, "python -m benchmarks arena --record"
    assert now.instructions <= before.instructions * (1 + TOLERANCE)
