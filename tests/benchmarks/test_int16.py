"""Layers of int16 beside the same in int8: recorded within their bounds, and no dearer now."""

from __future__ import annotations

import pytest

from benchmarks import int16
from benchmarks.boards import TOLERANCE

# Times the instructions of int8; more where int8 has a kernel of a kind that int16 has not:
# Winograd's, and with DSP cells of LSTMs in assembly.
_MOST = {"mps2_an386": 1.6, "mps3_an547": 2.3}
_MOST_OF_WINOGRAD = 2.4
_MOST_OF_LSTM_WITH_DSP = 1.9


def test_every_layer_is_recorded_within_its_bound() -> None:
    """On cores with the DSP extension and with Helium, wide sums included."""
    recorded = int16.read_recorded()
    assert set(recorded) == set(int16.BOARDS)
    for board, layers in recorded.items():
        assert set(layers) == set(int16.LAYERS)
        for name, price in layers.items():
            is_winograd = price.kernel8.endswith("_winograd")
            is_lstm = name.startswith("LSTM") and board == "mps2_an386"
            most = _MOST_OF_LSTM_WITH_DSP if is_lstm else _MOST[board]
            assert price.times <= (_MOST_OF_WINOGRAD if is_winograd else most)


@pytest.mark.compiler_version
@pytest.mark.parametrize("board", int16.BOARDS)
def test_a_wide_layer_did_not_grow_dearer(board: str) -> None:
    """One of the recorded layers is measured again, with the kernels that were recorded."""
    layer = "depthwise 3x3, 16x16x32, wide"
    before, now = int16.read_recorded()[board][layer], int16.price(layer, board)
    assert (now.kernel8, now.kernel16) == (before.kernel8, before.kernel16)
    assert now.int16 <= before.int16 * (1 + TOLERANCE), "python -m benchmarks int16 --record"
