"""Keeps the models of a page: those of the command line, and those that were dropped on it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from microtir.errors import UsageError
from microtir.frontend import read_model
from microtir.module.ir_module import IRModule
from microtir.support.names import module_name_from

MOST_BYTES = 64 << 20
"""Largest file that may be dropped: several times the flash of any board."""

_MOST_DROPPED = 8
_LONGEST = 60  # characters of a name: at most 240 bytes, which every file system takes
_UNSAFE = re.compile(r"[^\w.()+ -]+")


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model file on this machine.

    Args:
        label: what it is called on the page and in a command line.
        path: where it is.
        signature: which program of it is meant.
        dims: extents of dimensions that the file gives a name.
        input_shapes: shapes of inputs.
        counts_batch: whether one of those is a range, so that each run is told an extent.
        state: size and time of the file when it was asked for: what is said of another is void.
    """

    label: str
    path: Path
    signature: str | None = None
    dims: Mapping[str, int | range] = field(default_factory=dict)
    input_shapes: Mapping[str, Sequence[int | range]] = field(default_factory=dict)
    counts_batch: bool = False
    state: tuple[int, int] | None = None

    @property
    def module_name(self) -> str:
        """Return what the generated C is called."""
        return module_name_from(self.path.stem)

    def read(self) -> IRModule:
        """Return the model; MicrotirError if it cannot be read."""
        return read_model(
            self.path, signature=self.signature, dims=self.dims, input_shapes=self.input_shapes
        )


class ModelStore:
    """The models of a server, by the number that the page names them by.

    Args:
        folder: of the server alone; each dropped file has a folder of its own in it.
        given: models that were there from the begin, which stay.
    """

    def __init__(self, folder: Path, files: Sequence[ModelFile]) -> None:
        self._folder = folder
        self._files = dict(enumerate(files))
        self._given = len(self._files)
        self._next = self._given

    def add(self, name: str, content: bytes) -> int:
        """Keep a dropped file, and give up the oldest where there are too many; return its number.

        Of the last part of the name letters and digits of all scripts, blanks and `.-+_()` stay,
        so that the page, its errors and its commands call the file what the person calls it.
        """
        number = self._next
        self._next += 1
        folder = self._folder / str(number)
        folder.mkdir(mode=0o700)
        path = folder / _label(name)
        path.write_bytes(content)
        self._files[number] = ModelFile(path.name, path)
        dropped = [known for known in self._files if known >= self._given]
        for old in dropped[:-_MOST_DROPPED]:
            self.remove(old)
        return number

    def remove(self, number: int) -> None:
        """Give up a dropped file."""
        path = self._files.pop(number).path
        path.unlink()
        path.parent.rmdir()

    def file(self, number: int) -> ModelFile:
        """Return a model as it is now; UsageError if it is not there."""
        if number not in self._files:
            raise UsageError(
                "this model is not here any more",
                where="studio",
                legal=f"the {_MOST_DROPPED} files that were dropped last",
                fix="drop the file again",
            )
        file = self._files[number]
        return replace(file, state=_state(file.path))

    def labels(self) -> dict[int, str]:
        """Return what each model is called."""
        return {number: file.label for number, file in self._files.items()}


def _state(path: Path) -> tuple[int, int] | None:
    """Return size and time of a file; None where reading it will say what is wrong."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _label(name: str) -> str:
    """Return a name that leads nowhere, and is neither hidden nor an option of a command."""
    last = re.split(r"[/\\]", name)[-1]
    safe = _UNSAFE.sub("_", last).strip("._- ")
    path = PurePosixPath(safe)
    suffix = path.suffix[: _LONGEST // 2]
    return f"{path.stem[: _LONGEST - len(suffix)]}{suffix}" or "model"
