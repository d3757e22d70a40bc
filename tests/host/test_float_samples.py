"""Samples of float models: layouts and scales that are not those of the model are noticed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from microtir.errors import UsageError
from microtir.graph.ir import Graph
from microtir.host.float_samples import read_float_samples
from microtir.operators.activations.definition import Relu
from microtir.operators.arithmetic.definition import Mul
from microtir.operators.common.attributes import Activation
from tests.support.graphs import constant, graph, node, tensor


def _model(*shape: int, factor: float | None = None) -> Graph:
    """Return a model of one layer, which may scale its input."""
    x, y = tensor("x", shape), tensor("y", shape)
    if factor is None:
        return graph([node(Relu(Activation.RELU), (x,), y)], [x], [y])
    scale = constant("scale", np.array([factor], np.float32))
    return graph([node(Mul(), (x, scale), y)], [x], [y])


def test_sequences_the_other_way_round_are_refused(tmp_path: Path) -> None:
    """Steps and channels are exchanged, and the fix says what turns them."""
    np.save(tmp_path / "x.npy", np.zeros((4, 3, 20), np.float32))
    with pytest.raises(UsageError, match="two swapped axes") as error:
        read_float_samples(tmp_path / "x.npy", _model(1, 20, 3))
    assert "(0, 2, 1)" in str(error.value)


@pytest.mark.parametrize(
    ("factor", "largest", "words"),
    [
        (1 / 255, 1.0, "the model divides them by 255 itself"),
        (1 / 127.5, 1.0, "the model divides them by 127.5 itself"),
        (1 / 255, 250.0, ""),
        (0.5, 1.0, ""),
        (None, 250.0, "divide them by 255"),
    ],
)
def test_scales_are_doubted(
    tmp_path: Path, factor: float | None, largest: float, words: str
) -> None:
    """Pixels where the model wants shares, and shares where it makes them of pixels itself."""
    values = np.rint(np.linspace(0, largest, 48)) if largest > 1 else np.linspace(0, 1, 48)
    np.save(tmp_path / "x.npy", values.reshape(3, 4, 4, 1).astype(np.float32))
    doubts = read_float_samples(tmp_path / "x.npy", _model(1, 4, 4, 1, factor=factor)).doubts
    assert len(doubts) == bool(words) and all(words in text for text in doubts)
