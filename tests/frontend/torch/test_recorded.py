"""Programs of each kind of module and function give what PyTorch computed when it exported them."""

from __future__ import annotations

import io
import tarfile
from functools import cache

import numpy as np
import pytest

from microtir.frontend import from_torch
from microtir.graph.ir import Array
from tests.journeys.torch_modules import CASES, RECORDED, difference


@cache
def recorded() -> dict[str, bytes]:
    """Return the members of the archive by name."""
    members: dict[str, bytes] = {}
    with tarfile.open(RECORDED) as archive:
        for member in archive:
            stream = archive.extractfile(member)
            assert stream is not None, "all members are files"
            members[member.name] = stream.read()
    return members


def arrays_of(name: str, side: str) -> list[Array]:
    """Return the inputs or the outputs of a program in order."""
    stored = np.load(io.BytesIO(recorded()[f"{name}.npz"]))
    return [stored[key] for key in stored.files if key.startswith(side)]


@pytest.mark.parametrize("name", sorted(CASES))
def test_outputs_are_those_of_pytorch(name: str) -> None:
    """Integers are equal, and floats up to the order of sums."""
    graph = from_torch(recorded()[f"{name}.pt2"]).graph
    assert graph is not None
    assert not difference(graph, arrays_of(name, "inputs"), arrays_of(name, "outputs"))
