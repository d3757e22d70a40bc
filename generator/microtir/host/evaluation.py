"""Counts how often a classifier is right, class by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir.errors import RunError
from microtir.graph.ir import Array
from microtir.host.tensors import TensorInfo

_HALF = 0.5  # from which a single output means the second class


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The accuracy of a classifier: how many samples it got right, and which it took for which.

    Args:
        labels: the class of each sample.
        decisions: what the model took it for.
        classes: how many there are.
    """

    labels: npt.NDArray[np.int64]
    decisions: npt.NDArray[np.int64]
    classes: int

    @property
    def right(self) -> int:
        """Return how many samples were taken for what they are."""
        return int((self.labels == self.decisions).sum())

    @property
    def accuracy(self) -> float:
        return self.right / len(self.labels)

    def confusion(self) -> npt.NDArray[np.int64]:
        """Return the samples by their class (rows) and by what they were taken for (columns)."""
        matrix = np.zeros((self.classes, self.classes), np.int64)
        np.add.at(matrix, (self.labels, self.decisions), 1)
        return matrix


def evaluate(
    outputs: Sequence[Mapping[str, Array]],
    labels: Sequence[int],
    port: TensorInfo,
    names: Sequence[str] = (),
) -> Evaluation:
    """Compare the largest element of an output with the class of each sample.

    Of an output with one element the second class begins at the real number 0.5.

    Args:
        outputs: of each sample, by name.
        labels: the class of each sample, from 0 on.
        port: the output that says the class.
        names: of all classes, where their order gives them their numbers.

    Raises:
        RunError: there are more classes than the output has elements, or other ones.
    """
    scores = np.stack([port.dequantise(output[port.name]).reshape(-1) for output in outputs])
    classes = max(scores.shape[1], 2)
    if max(labels) >= classes:
        raise RunError(
            f"the dataset has the class {max(labels)}, but the output '{port.name}' has only "
            f"{scores.shape[1]} elements",
            where="labels",
            legal=f"0 to {classes - 1}",
        )
    if names and len(names) != classes:
        # The numbers of those behind a class that is not there would be wrong, in silence.
        raise RunError(
            f"the dataset has folders for {len(names)} classes ({', '.join(names)}), but the "
            f"output '{port.name}' has {classes} elements, so the numbers of the classes are not "
            "known",
            where="labels",
            legal=f"{classes} folders, in the order of their names, or folders that are named 0 to"
            f" {classes - 1}",
            fix="make a folder for each class, also for classes without samples",
        )
    single = scores.shape[1] == 1
    decisions = (scores[:, 0] >= _HALF).astype(np.int64) if single else scores.argmax(axis=1)
    return Evaluation(np.array(labels, np.int64), decisions, classes)
