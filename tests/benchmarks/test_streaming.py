"""What streaming costs with the same kernels: recorded for every model, and no dearer now."""

from __future__ import annotations

import pytest

from benchmarks import streaming
from benchmarks.boards import INT8_MODELS, TOLERANCE
from microtir.boards import load_board


def test_every_model_is_recorded() -> None:
    """Each way to plan a model, with workspace saved wherever something streams."""
    recorded = streaming.read_recorded()
    assert set(recorded) == set(INT8_MODELS)
    for ways in recorded.values():
        assert tuple(ways) == streaming.WAYS
        for price in ways.values():
            saves = price.streamed_bytes < price.whole_bytes
            assert saves or price.more == 0
            assert price.differing <= 1  # the pool that ends a stream


@pytest.mark.model("strww_int8")
def test_streaming_did_not_grow_dearer() -> None:
    """Rows of one pixel are the dearest: one of the recorded pairs is measured again."""
    before = streaming.read_recorded()["strww_int8"]["balanced"]
    now = streaming.price("strww_int8", "balanced", load_board(streaming.BOARD))
    assert now.more <= before.more + TOLERANCE, "python -m benchmarks streaming --record"
