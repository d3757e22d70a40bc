"""Keeps the models of a page, and samples for them: of the command line, dropped, and made here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from microtir.errors import UsageError
from microtir.frontend import read_model
from microtir.module.ir_module import IRModule
from microtir.support.names import module_name_from

MOST_BYTES = 64 << 20
"""Largest file that may be dropped: several times the flash of any board."""

_MOST_DROPPED = 8
_MOST_SAMPLES = 2
_LONGEST = 60  # characters of a name: at most 240 bytes, which every file system takes
_UNSAFE = re.compile(r"[^\w.()+ -]+")


@dataclass(frozen=True, slots=True)
class Origin:
    """The float model that integers were made of.

    Args:
        number: by which the page names it.
        stem: of its file.
        words: of a command line that makes the same of it.
    """

    number: int
    stem: str
    words: tuple[str, ...]


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
        origin: of a file of integers that was made here.
    """

    label: str
    path: Path
    signature: str | None = None
    dims: Mapping[str, int | range] = field(default_factory=dict)
    input_shapes: Mapping[str, Sequence[int | range]] = field(default_factory=dict)
    counts_batch: bool = False
    state: tuple[int, int] | None = None
    origin: Origin | None = None

    @property
    def module_name(self) -> str:
        """Return what the generated C is called."""
        return module_name_from(self.path.stem if self.origin is None else self.origin.stem)

    @property
    def words(self) -> tuple[str, ...]:
        """Return what names it in a command line."""
        return (self.label,) if self.origin is None else self.origin.words

    @property
    def cost(self) -> Path:
        """Return the place of what a file cost that was made here, as the page shows it."""
        return self.path.with_name("cost.html")

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
        self._samples: dict[int, ModelFile] = {}
        self._given = len(self._files)
        self._next = self._given

    def add(self, name: str, content: bytes) -> int:
        """Keep a dropped file, and give up the oldest where there are too many; return its number.

        Of the last part of the name letters and digits of all scripts, blanks and `.-+_()` stay,
        so that the page, its errors and its commands call the file what the person calls it.
        """
        number, path = self._place(name)
        path.write_bytes(content)
        self._files[number] = ModelFile(path.name, path)
        self.give_up_oldest()
        return number

    def add_made(self, name: str, origin: Origin) -> int:
        """Keep a place for a file that a worker will write; return its number.

        Nothing is given up for it until it is there.
        """
        number, path = self._place(name)
        self._files[number] = ModelFile(path.name, path, origin=origin)
        return number

    def add_samples(self, name: str, content: bytes) -> int:
        """Keep a file of samples, and give up the oldest where there are too many."""
        number, path = self._place(name)
        path.write_bytes(content)
        self._samples[number] = ModelFile(path.name, path)
        for old in list(self._samples)[:-_MOST_SAMPLES]:
            _remove(self._samples.pop(old))
        return number

    def samples(self, number: int) -> ModelFile:
        """Return a file of samples as it is now; UsageError if it is not there."""
        if number not in self._samples:
            raise UsageError(
                "the studio no longer has these samples",
                where="studio",
                legal=f"one of the last {_MOST_SAMPLES} files of samples",
                fix="drop the file onto the page again",
            )
        file = self._samples[number]
        return replace(file, state=_state(file.path))

    def newest_samples(self) -> dict[str, object] | None:
        """Return the samples that a page that is opened anew goes on with; None without any."""
        number = max(self._samples, default=None)
        if number is None:
            return None
        return {"number": number, "label": self._samples[number].label}

    def _place(self, name: str) -> tuple[int, Path]:
        """Return a number, and the path of a file of that name in a folder of its own."""
        number = self._next
        self._next += 1
        folder = self._folder / str(number)
        folder.mkdir(mode=0o700)
        return number, folder / _label(name)

    def give_up_oldest(self) -> None:
        """Give up the oldest files where there are too many."""
        dropped = [known for known in self._files if known >= self._given]
        for old in dropped[:-_MOST_DROPPED]:
            self.remove(old)

    def remove(self, number: int) -> None:
        """Give up a dropped file, unless it has been given up."""
        if number in self._files:
            _remove(self._files.pop(number))

    def file(self, number: int) -> ModelFile:
        """Return a model as it is now; UsageError if it is not there."""
        if number not in self._files:
            raise UsageError(
                "the studio no longer has this model",
                where="studio",
                legal=f"one of the last {_MOST_DROPPED} models",
                fix="drop the file onto the page again",
            )
        file = self._files[number]
        return replace(file, state=_state(file.path))

    def listed(self) -> list[dict[str, object]]:
        """Return each model as the page lists it: the number and label, and what it was made of."""
        return [listed(number, file) for number, file in self._files.items()]


def listed(number: int, file: ModelFile) -> dict[str, object]:
    """Return a model as the page lists it."""
    origin = None if file.origin is None else file.origin.number
    return {"number": number, "label": file.label, "origin": origin}


def _remove(file: ModelFile) -> None:
    """Remove a file with its folder, in which what it cost may stand.

    A worker that is still at it may write into the folder, which goes with that of the server.
    """
    for path in (file.path, file.cost):
        path.unlink(missing_ok=True)
    with suppress(OSError):
        file.path.parent.rmdir()


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
