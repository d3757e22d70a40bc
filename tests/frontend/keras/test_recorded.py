"""Models that Keras saved give what Keras computed of them; `tests.journeys` records both."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from microtir.frontend import from_keras
from tests.journeys.keras_layers import RECORDED, difference

with zipfile.ZipFile(RECORDED) as _archive:
    MEMBERS = {name: _archive.read(name) for name in _archive.namelist()}

MODELS = [name for name in MEMBERS if not name.endswith(".npz")]


@pytest.mark.parametrize("name", MODELS)
def test_a_recorded_model_gives_what_keras_gives(name: str) -> None:
    """Both formats: every class of layers that is read, and networks of several."""
    graph = from_keras(MEMBERS[name]).graph
    assert graph is not None
    with np.load(io.BytesIO(MEMBERS[f"{name.rpartition('.')[0]}.npz"])) as stored:
        arrays = [stored[f"arr_{number}"] for number in range(len(stored))]
    count = len(graph.arguments)
    assert difference(graph, arrays[:count], arrays[count:]) == ""
