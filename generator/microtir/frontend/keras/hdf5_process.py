"""Read an HDF5 file of a stranger in a process of its own.

The library follows links into other files, loads plugins for filters, makes arrays of any size that
a few bytes state, and crashes on some damaged files.  So nothing is looked up by a path: all links
are walked once, what is more than plain groups with plain arrays in this file is refused, and what
is left comes out as arrays and texts.  The module is run as a program by its path, and imports
little: it runs for every file.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from microtir.errors import ModelFileError

if TYPE_CHECKING:
    import h5py

SOURCE, ARRAYS, TEXTS, REASON = "model.h5", "arrays.npz", "texts.json", "reason.json"
"""Files in the folder that the program works in."""

REFUSED = 4  # exit status of a file that is refused

_MOST_OBJECTS = 1 << 16
_MOST_DEPTH = 32  # of groups in groups
_MOST_ATTRIBUTE_BYTES = 1 << 26
_MOST_READ = 2  # times the bytes of the file
_NOT_OF_LAYERS = ("optimizer", "optimizer_weights")
_TEXT, _LIST = "model_config", "weight_names"


def main(folder: Path) -> int:
    """Read the file in a folder, and write what it holds beside it; return an exit status."""
    data = (folder / SOURCE).read_bytes()
    try:
        groups, arrays = _content(data)
    except ModelFileError as error:
        reason = {"what": error.what, "where": error.where, "legal": error.legal}
        (folder / REASON).write_text(json.dumps(reason), "utf-8")
        return REFUSED
    np.savez(folder / ARRAYS, *arrays.values())
    (folder / TEXTS).write_text(json.dumps({"groups": groups, "arrays": list(arrays)}), "utf-8")
    return 0


def _content(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Return the texts of groups, and the arrays, by their paths."""
    import h5py

    groups: dict[str, Any] = {}
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    budget = _MOST_READ * len(data)
    with _damage(""):
        remaining = [("", h5py.File(io.BytesIO(data), "r"), 0)]
        while remaining:
            path, group, depth = remaining.pop()
            groups[path] = _texts(group, path)
            for name in group:
                inner = f"{path}/{name}" if path else str(name)
                if inner in _NOT_OF_LAYERS:
                    continue
                if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                    raise ModelFileError("it is a link to another object or file", where=inner,
                                         legal="groups and arrays")  # fmt: skip
                _check_count(len(groups) + len(arrays), depth, inner)
                entry = group[name]
                if isinstance(entry, h5py.Dataset):
                    arrays[inner] = _array(entry, len(data), inner)
                    budget -= arrays[inner].nbytes
                elif isinstance(entry, h5py.Group):
                    remaining.append((inner, entry, depth + 1))
                if budget < 0:
                    raise ModelFileError("its arrays are larger than the file", where=inner)
    return groups, arrays


def _check_count(count: int, depth: int, where: str) -> None:
    if count >= _MOST_OBJECTS or depth >= _MOST_DEPTH:
        raise ModelFileError(
            "the file has too many groups and arrays, or groups that contain themselves",
            where=where, legal=f"at most {_MOST_OBJECTS}, nested {_MOST_DEPTH} deep",
        )  # fmt: skip


def _array(dataset: h5py.Dataset, size: int, where: str) -> np.ndarray[Any, Any]:
    """Return an array whose numbers stand in the file as they are.

    Raises:
        ModelFileError: they do not, or are no numbers, or more than the file holds.
    """
    from h5py import h5d

    with _damage(where):
        stored = dataset.id.get_create_plist()
        is_elsewhere = stored.get_layout() == h5d.VIRTUAL or stored.get_external_count() > 0
        if is_elsewhere or stored.get_nfilters() > 0:
            raise ModelFileError(
                f"its numbers {'are in other files' if is_elsewhere else 'use HDF5 filters'}",
                where=where, legal="arrays in this file, without compression or other filters",
            )  # fmt: skip
        dtype = dataset.dtype
        is_plain = dataset.shape is not None and dtype.kind in "fiub"
        if not is_plain or dataset.size * dtype.itemsize > size:
            raise ModelFileError(
                f"it has the type {dtype} and the shape {dataset.shape}", where=where,
                legal=f"numbers, of which the file's {size} bytes have room",
            )  # fmt: skip
        return np.asarray(dataset[()])


def _texts(group: h5py.Group, where: str) -> dict[str, Any]:
    """Return the configuration of a model and the names of weights, as far as a group has them."""
    texts: dict[str, Any] = {}
    config = _attribute(group, _TEXT, where)
    if config is not None:
        texts[_TEXT] = _text(config)
    part = _attribute(group, _LIST, where)
    parts = [] if part is None else [part]
    while not texts.get(_LIST) and part is None:  # long lists are stored in numbered parts
        more = _attribute(group, f"{_LIST}{len(parts)}", where)
        if more is None:
            break
        parts.append(more)
    if parts:
        texts[_LIST] = [_text(t) for p in parts for t in np.asarray(p).reshape(-1).tolist()]
    return texts


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _attribute(group: h5py.Group, name: str, where: str) -> Any:
    """Return an attribute; None if there is none."""
    with _damage(where):
        attributes = group.attrs
        if name not in attributes:
            return None
        stored = attributes.get_id(name)
        count = float(np.prod(stored.shape or (1,), dtype=np.float64)) * stored.dtype.itemsize
        if count > _MOST_ATTRIBUTE_BYTES or stored.dtype.kind not in "OSUf":
            raise ModelFileError(
                f"its attribute {name!r} has {count:.0f} bytes of the type {stored.dtype}",
                where=where, legal=f"texts of at most {_MOST_ATTRIBUTE_BYTES} bytes",
            )  # fmt: skip
        return attributes[name]


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
        raise ModelFileError(f"the HDF5 file is damaged: {reason[:200]}", where=where) from None


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
