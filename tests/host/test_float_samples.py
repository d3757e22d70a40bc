"""Samples of float models: layouts and scales that are not those of the model are noticed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from microtir.errors import UsageError
from microtir.graph.ir import Array, Graph
from microtir.host.float_samples import FloatSamples, read_float_samples
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
    with pytest.raises(UsageError, match="with their axes swapped") as error:
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
        (None, 250.5, "divide them by 255"),
    ],
)
def test_scales_are_doubted(
    tmp_path: Path, factor: float | None, largest: float, words: str
) -> None:
    """Pixels where the model wants shares, and shares where it makes them of pixels itself."""
    values = np.linspace(0, largest, 48)
    values = np.rint(values) if largest == 250.0 else values  # 250.5: pixels that were resized
    np.save(tmp_path / "x.npy", values.reshape(3, 4, 4, 1).astype(np.float32))
    doubts = read_float_samples(tmp_path / "x.npy", _model(1, 4, 4, 1, factor=factor)).doubts
    assert len(doubts) == bool(words) and all(words in text for text in doubts)


def _read(tmp_path: Path, size: int, **arrays: object) -> FloatSamples:
    """Read six samples of a model of some outputs, with other arrays beside them."""
    np.savez(tmp_path / "s.npz", x=np.zeros((6, size), np.float32), **arrays)  # type: ignore[arg-type]
    return read_float_samples(tmp_path / "s.npz", _model(1, size))


@pytest.mark.parametrize(
    ("size", "labels", "kind"),
    [
        (3, np.arange(6) % 3, "classes"),
        (3, (np.arange(6) % 3)[:, np.newaxis], "classes"),
        (3, np.eye(3)[np.arange(6) % 3], "classes"),
        (3, np.eye(3, dtype=np.int64)[np.arange(6) % 3], "classes"),
        (3, np.ones((6, 3)), "numbers"),
        (1, np.arange(6), "numbers"),
        (1, np.arange(6) > 2, "numbers"),
    ],
)
def test_labels_are_classes_or_numbers(tmp_path: Path, size: int, labels: Array, kind: str) -> None:
    """One-hot rows are classes; of one output whole numbers are values, too."""
    found = _read(tmp_path, size, labels=labels).labels
    assert found is not None
    assert (found.dtype.kind == "f") == (kind == "numbers")
    assert kind == "numbers" or found.tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    "labels",
    [
        np.arange(6) % 3 + 1,
        np.arange(6) - 1,
        np.arange(6) / 2,
        np.array(list("abcdef")),
        np.full((6, 3), np.nan),
        np.zeros((6, 4)),
        np.zeros((6, 0)),
        np.zeros((6, 3), [("a", "f4")]),
    ],
)
def test_labels_that_do_not_fit_are_refused(tmp_path: Path, labels: Array) -> None:
    """Classes may begin at 0 alone, also where the samples that measure hold no wrong one."""
    with pytest.raises(UsageError, match=r"labels.*\n.*an integer from 0 to 2 for each sample"):
        _read(tmp_path, 3, labels=labels)


def test_arrays_that_are_not_read_are_told(tmp_path: Path) -> None:
    """A misspelt name of labels would cost the accuracy, and nobody would know."""
    (doubt,) = _read(tmp_path, 3, label=np.zeros(6)).doubts
    assert "'label'" in doubt and "--labels" in doubt
