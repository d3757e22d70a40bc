"""Open HDF5 files of strangers: what h5py may be asked for, and how much of it.

The library follows links into other files, loads plugins for filters, and makes arrays of any size
that a few bytes state.  So nothing is looked up by a path: all links are walked once, and what is
more than plain groups with plain arrays in this file is refused by name.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from microtir.errors import ModelFileError, ToolError
from microtir.graph.ir import Array
from microtir.graph.names import brief
from microtir.support.resources import install_extra

if TYPE_CHECKING:
    import h5py

SAVE_AGAIN = 'save the model again: model.save("model.keras")'

_MOST_OBJECTS = 1 << 16
_MOST_DEPTH = 32  # of groups in groups
_MOST_ATTRIBUTE_BYTES = 1 << 26
_MOST_READ = 2  # times the bytes of the file: a layer that is called twice is read twice


@dataclass(frozen=True, slots=True)
class Hdf5File:
    """The arrays and groups of a file by their paths.

    Args:
        file: its name, for messages.
        size: in bytes.
        datasets: by path, without a slash in front.
        groups: by path; the root's is empty.
    """

    file: str
    size: int
    datasets: Mapping[str, h5py.Dataset]
    groups: Mapping[str, h5py.Group]
    _read: list[int] = field(default_factory=lambda: [0])  # bytes so far

    def array(self, path: str) -> Array:
        """Return the numbers of a dataset.

        Raises:
            ModelFileError: it is no plain array of numbers, or larger than the file.
        """
        where = f"{self.file}: {brief(path)!r}"
        dataset = self.datasets[path]
        with _damage(where):
            _check_storage(dataset, self.size, where)
            count = dataset.size * dataset.dtype.itemsize
            self._read[0] += count
            if self._read[0] > _MOST_READ * self.size:
                raise ModelFileError(
                    "its arrays share their bytes, and are more than the file holds", where=where,
                    fix=SAVE_AGAIN,
                )  # fmt: skip
            return np.asarray(dataset[()])

    def text(self, group: str, name: str) -> str | None:
        """Return an attribute that is one text; None if there is none of this name."""
        value = self._attribute(group, name)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        return value if isinstance(value, str) else None

    def texts(self, group: str, name: str) -> tuple[str, ...]:
        """Return an attribute that is a list of texts; long ones are stored in numbered parts."""
        value = self._attribute(group, name)
        parts = [] if value is None else [value]
        while value is None and (part := self._attribute(group, f"{name}{len(parts)}")) is not None:
            parts.append(part)
        items = [item for part in parts for item in np.asarray(part).reshape(-1).tolist()]
        return tuple(
            i.decode("utf-8", "replace") if isinstance(i, bytes) else str(i) for i in items
        )

    def _attribute(self, group: str, name: str) -> Any:
        where = f"{self.file}: {brief(group)!r}, attribute {name!r}"
        with _damage(where):
            attributes = self.groups[group].attrs
            if name not in attributes:
                return None
            stored = attributes.get_id(name)
            count = int(np.prod(stored.shape or (1,), dtype=np.float64)) * stored.dtype.itemsize
            if count > _MOST_ATTRIBUTE_BYTES or stored.dtype.kind not in "OSUf":
                raise ModelFileError(
                    f"it has {count} bytes of the type {stored.dtype}", where=where,
                    legal=f"texts of at most {_MOST_ATTRIBUTE_BYTES} bytes", fix=SAVE_AGAIN,
                )  # fmt: skip
            return attributes[name]


def open_hdf5(data: bytes, file: str) -> Hdf5File:
    """Open a file that is held in memory.

    Raises:
        ToolError: the package `h5py` is not installed.
        ModelFileError: it is damaged, or has links, arrays or filters that point outside of it.
    """
    try:
        import h5py
    except ImportError:
        raise ToolError(
            "Keras models are read with the package h5py, which is not installed",
            where=file,
            fix=install_extra("keras"),
        ) from None
    datasets: dict[str, h5py.Dataset] = {}
    with _damage(file):
        root = h5py.File(io.BytesIO(data), "r")
        groups: dict[str, h5py.Group] = {"": root}
        remaining = [("", root, 0)]
        while remaining:
            path, group, depth = remaining.pop()
            for name in group:
                inner = f"{path}/{name}" if path else str(name)
                where = f"{file}: {brief(inner)!r}"
                if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                    raise ModelFileError("it is a link to another place", where=where,
                                         legal="groups and arrays", fix=SAVE_AGAIN)  # fmt: skip
                _check_count(len(groups) + len(datasets), depth, where)
                entry = group[name]
                if isinstance(entry, h5py.Dataset):
                    datasets[inner] = entry
                elif isinstance(entry, h5py.Group):
                    groups[inner] = entry
                    remaining.append((inner, entry, depth + 1))
    return Hdf5File(file, len(data), datasets, groups)


def _check_count(count: int, depth: int, where: str) -> None:
    if count >= _MOST_OBJECTS or depth >= _MOST_DEPTH:
        raise ModelFileError(
            "the file has too many groups and arrays, or groups that hold themselves", where=where,
            legal=f"at most {_MOST_OBJECTS}, nested {_MOST_DEPTH} deep", fix=SAVE_AGAIN,
        )  # fmt: skip


def _check_storage(dataset: h5py.Dataset, size: int, where: str) -> None:
    """Refuse what is not an array whose numbers stand in the file as they are."""
    from h5py import h5d

    stored = dataset.id.get_create_plist()
    is_elsewhere = stored.get_layout() == h5d.VIRTUAL or stored.get_external_count() > 0
    if is_elsewhere or stored.get_nfilters() > 0:
        raise ModelFileError(
            f"its numbers {'are in other files' if is_elsewhere else 'went through a filter'}",
            where=where, legal="arrays that are stored as they are", fix=SAVE_AGAIN,
        )  # fmt: skip
    dtype, count = dataset.dtype, 0 if dataset.shape is None else dataset.size
    if dataset.shape is None or dtype.kind not in "fiub" or count * dtype.itemsize > size:
        raise ModelFileError(
            f"it has the type {dtype} and the shape {brief(str(dataset.shape))}", where=where,
            legal=f"numbers, of which the file's {size} bytes have room", fix=SAVE_AGAIN,
        )  # fmt: skip


@contextmanager
def _damage(where: str) -> Iterator[None]:
    """Say of every error that h5py raises that the file is damaged."""
    try:
        yield
    except (
        OSError, KeyError, RuntimeError, ValueError, TypeError, AttributeError, IndexError,
        OverflowError, MemoryError, NotImplementedError,
    ) as error:  # fmt: skip
        reason = " ".join(str(error).split())
        raise ModelFileError(
            f"the HDF5 file is damaged: {reason[:200]}", where=where, fix=SAVE_AGAIN
        ) from None
