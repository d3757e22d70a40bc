"""Damaged files of every kind: a result or a diagnostic, never anything else."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.attack.mutated_files import KINDS, ROOM, Kind, attack
from tests.support.seeds import seeds

pytestmark = pytest.mark.tools

EACH = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@EACH
def test_good_files_are_read(kind: Kind, tmp_path: Path) -> None:
    """What is damaged was a file that is read."""
    folder = tmp_path / "one_board"
    folder.mkdir()
    files = kind.files(1)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    kind.read(folder / next(iter(files)))


@pytest.mark.soak
@EACH
def test_damaged_files(kind: Kind) -> None:
    """Each is read, or refused in words, within limits of memory and time."""
    (seed,) = seeds(0, 1)
    outcome = attack(kind, seed, kind.count)
    assert not outcome.found
    assert outcome.read + outcome.refused == kind.count


def _zeros(seed: int) -> Mapping[str, bytes]:
    return {"m.x": bytes(40 + seed)}


def test_what_is_found() -> None:
    """A reader that raises something else, one that dies and one that takes all memory."""

    def read(path: Path) -> None:
        size = path.stat().st_size
        if size > 60:
            raise KeyError("the reader is wrong")
        if size < 10:
            os.kill(os.getpid(), signal.SIGKILL)
        if size < 20:
            bytes(ROOM * 2)

    outcome = attack(Kind("of the test", _zeros, read), 3, 60)
    assert {one.what for one in outcome.found} == {
        "KeyError: 'the reader is wrong'",
        "MemoryError: ",
        "the process ended with status 9",
    }
    assert outcome.read + len(outcome.found) == 60
