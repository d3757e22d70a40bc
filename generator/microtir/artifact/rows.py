"""Turns rows of a layer's output, as they lie in memory, into rows as the model means them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from microtir.codegen.metadata import OutputData

Rows = npt.NDArray[np.generic]


def logical_rows(memory: Rows, facts: OutputData) -> Rows:
    """Return rows in the order of the model, without borders.

    Args:
        memory: (rows, elements of a row) as they lie.
        facts: of the output.

    Returns:
        (rows, W * C).
    """
    planes = facts.planes
    if planes is None:
        return memory
    image = slice(planes.before, planes.before + planes.width)
    split = memory.reshape(len(memory), planes.channels, -1)[:, :, image]
    rows: Rows = split.transpose(0, 2, 1).reshape(len(memory), -1)
    return rows.astype(planes.dtype)
