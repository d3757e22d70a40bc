"""The arrays and texts of an HDF5 file, which a process of its own reads."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from microtir.errors import ModelFileError, ToolError
from microtir.frontend.keras import hdf5_process
from microtir.graph.ir import Array
from microtir.graph.names import brief
from microtir.support import processes
from microtir.support.reading import parse_json
from microtir.support.resources import install_extra

SAVE_AGAIN = 'save the model again: model.save("model.keras")'

_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Hdf5File:
    """The content of a file.

    Args:
        file: its name, for messages.
        arrays: by path, without a slash in front.
        groups: texts and lists of texts by their names, by path; the root's is empty.
    """

    file: str
    arrays: Mapping[str, Array]
    groups: Mapping[str, Mapping[str, Any]]

    def text(self, group: str, name: str) -> str | None:
        """Return a text of a group; None if there is none of this name."""
        value = self.groups[group].get(name)
        return value if isinstance(value, str) else None

    def texts(self, group: str, name: str) -> tuple[str, ...]:
        """Return a list of texts of a group; empty if there is none of this name."""
        value = self.groups[group].get(name)
        return tuple(map(str, value)) if isinstance(value, list) else ()


def open_hdf5(data: bytes, file: str) -> Hdf5File:
    """Read a file that is held in memory.

    Raises:
        ToolError: the package `h5py` is not installed, or takes too long.
        ModelFileError: it is damaged, or has links, arrays or filters that point outside of it.
    """
    if find_spec("h5py") is None:
        raise ToolError(
            "Keras models are read with the package h5py, which is not installed",
            where=file,
            fix=install_extra("keras"),
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / hdf5_process.SOURCE).write_bytes(data)
        status = _run(folder, file)
        if status == hdf5_process.REFUSED:
            reason = parse_json((folder / hdf5_process.REASON).read_text("utf-8"))
            where = f"{file}: {brief(reason['where'])!r}" if reason["where"] else file
            raise ModelFileError(reason["what"], where=where, legal=reason["legal"], fix=SAVE_AGAIN)
        if status:
            raise ModelFileError(
                "the HDF5 file is damaged: the library that reads it crashed", where=file,
                fix=SAVE_AGAIN,
            )  # fmt: skip
        texts = parse_json((folder / hdf5_process.TEXTS).read_text("utf-8"))
        with np.load(folder / hdf5_process.ARRAYS) as stored:
            arrays = {path: stored[f"arr_{n}"] for n, path in enumerate(texts["arrays"])}
    return Hdf5File(file, arrays, texts["groups"])


def _run(folder: Path, file: str) -> int:
    """Run the program, and return its exit status."""
    # The package is found as this process found it, installed or not.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, hdf5_process.__file__, str(folder)]
    try:
        return processes.run(command, cwd=folder, env=environment, timeout=_SECONDS).returncode
    except TimeoutError:
        raise ToolError(
            f"reading it took more than {_SECONDS:g} seconds", where=file, fix=SAVE_AGAIN
        ) from None
