"""Data sets that packages bring, split anew for each seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_TEST_SHARE = 0.4
CALIBRATION_SAMPLES = 100


@dataclass(frozen=True, slots=True)
class Split:
    """Samples for training and for the test, inputs in float32.

    Targets are labels of classes, or numbers with a mean of 0 and a deviation of 1.
    """

    train_x: Array
    train_y: Array
    test_x: Array
    test_y: Array

    @property
    def calibration(self) -> Array:
        """Return the first samples of the training set."""
        return self.train_x[:CALIBRATION_SAMPLES]

    @property
    def calibration_y(self) -> Array:
        """Return the targets of these samples."""
        return self.train_y[:CALIBRATION_SAMPLES]


@dataclass(frozen=True, slots=True)
class Task:
    """A data set: `classes` is 0 where numbers are predicted."""

    name: str
    load: Callable[[], Any]
    shape: tuple[int, ...]
    classes: int

    def split(self, seed: int) -> Split:
        """Return samples in an order that a seed gives, scaled by the training set."""
        data = self.load()
        x = np.asarray(data.data, np.float32).reshape(-1, *self.shape)
        y = np.asarray(data.target)
        order = np.random.default_rng(seed).permutation(len(x))
        tests = int(len(x) * _TEST_SHARE)
        test, train = order[:tests], order[tests:]
        if len(self.shape) == 1:
            mean, deviation = x[train].mean(0), x[train].std(0)
            x = (x - mean) / np.maximum(deviation, 1e-6)
        else:
            x = x / np.abs(x[train]).max()
        if not self.classes:
            y = ((y - y[train].mean()) / y[train].std()).astype(np.float32)
        return Split(x[train], y[train], x[test], y[test])


def _scikit_learn(name: str) -> Callable[[], Any]:
    """Return what loads a data set that is part of scikit-learn."""

    def load() -> Any:
        from sklearn import datasets

        return getattr(datasets, f"load_{name}")()

    return load


def _keywords() -> Any:
    """Return spoken words; espeak-ng is needed only where they are asked for."""
    from benchmarks.quantise.speech import load_speech

    return load_speech()


TASKS: Mapping[str, Task] = MappingProxyType(
    {
        task.name: task
        for task in (
            Task("keywords", _keywords, (1, 49, 10), 10),
            Task("digits", _scikit_learn("digits"), (1, 8, 8), 10),
            Task("wine", _scikit_learn("wine"), (13,), 3),
            Task("breast_cancer", _scikit_learn("breast_cancer"), (30,), 2),
            Task("diabetes", _scikit_learn("diabetes"), (10,), 0),
        )
    }
)
"""The tasks by name; images are (channels, rows, columns)."""
