"""Models that Keras saved give what Keras computed of them; `tests.journeys` records both."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from microtir.frontend import from_keras
from tests.journeys.keras_2 import RECORDED_2
from tests.journeys.keras_layers import RECORDED, difference


def _names(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return [name for name in archive.namelist() if not name.endswith(".npz")]


def _difference(path: Path, name: str) -> str:
    """How outputs of a recorded model differ from the recorded ones."""
    with zipfile.ZipFile(path) as archive:
        data, arrays = archive.read(name), archive.read(f"{name.rpartition('.')[0]}.npz")
    graph = from_keras(data).graph
    assert graph is not None
    with np.load(io.BytesIO(arrays)) as stored:
        values = [stored[f"arr_{number}"] for number in range(len(stored))]
    count = len(graph.arguments)
    return difference(graph, values[:count], values[count:])


@pytest.mark.parametrize("name", _names(RECORDED))
def test_a_recorded_model_gives_what_keras_gives(name: str) -> None:
    """Both formats: every class of layers that is read, and networks of several."""
    assert _difference(RECORDED, name) == ""


@pytest.mark.parametrize("name", _names(RECORDED_2))
def test_a_model_of_keras_2_gives_what_that_gives(name: str) -> None:
    """Its names of weights and its calls of models in models are others."""
    assert _difference(RECORDED_2, name) == ""
