"""Open the archive that `torch.export.save` writes: a zip file of JSON and raw tensors.

Nothing in it is run, and no pickle is opened.  Members are stored as they are, so that an archive
holds no more than its own bytes.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend.onnx.file import MAX_RANK, MAX_TENSOR_BYTES
from microtir.frontend.torch.records import Record, parse_record
from microtir.frontend.torch.scalar_types import stored_type
from microtir.graph.ir import Array
from microtir.graph.names import brief

_SAVE = "save it with torch.export.save(torch.export.export(model.eval(), inputs), 'model.pt2')"
_NEWER = f"{_SAVE}, with PyTorch 2.9 or later"
_MOST_MEMBERS = 1 << 16
_MOST_JSON = 1 << 28
_STRIDED = 7  # how torch numbers the layout of plain tensors
_BYTES_EACH = 16  # that tensors take for each byte of the archive, where they share or repeat some


@dataclass(slots=True)
class _Room:
    """The bytes that tensors may still take."""

    left: int

    def take(self, count: int, where: str) -> None:
        """Count the bytes of a tensor.

        Raises:
            ModelFileError: there are too many.
        """
        self.left -= count
        if count > MAX_TENSOR_BYTES or self.left < 0:
            raise ModelFileError(
                f"it takes {count} bytes, which is more than is allowed",
                where=where,
                legal=f"{MAX_TENSOR_BYTES} a tensor, {_BYTES_EACH} for each byte of the archive",
                fix="save the model again",
            )


@dataclass(frozen=True, slots=True)
class Archive:
    """An open archive.

    Args:
        file: its name, for errors.
        members: the names of what it holds, without the folder that all lie in.
        order: of bytes, "<" or ">".
        container: all members.
        size: of the archive in bytes.
        room: for tensors that are taken out.
        tables: of tensors, by the folders that have been looked at.
    """

    file: str
    members: Mapping[str, zipfile.ZipInfo]
    order: Literal["<", ">"]
    container: zipfile.ZipFile
    size: int
    room: _Room
    tables: dict[str, Mapping[str, Record]] = field(default_factory=dict)

    def anew(self) -> Archive:
        """Return the same archive, of which nothing has been taken yet."""
        return replace(self, room=_Room(_BYTES_EACH * self.size))

    def program(self) -> Record:
        """Return the program as JSON.

        Raises:
            ModelFileError: there is none, or it is damaged.
            UnsupportedModelError: there are several, or it is of another version.
        """
        models = [n for n in self.members if n.startswith("models/") and n.endswith(".json")]
        if len(models) != 1:
            raise self._not_one(models)
        data = self._read(models[0], _MOST_JSON)
        return parse_record(data, self.file, models[0])

    def weight(self, name: str) -> Array:
        """Return a parameter or buffer that is saved, by its name in the model."""
        return self._tensor("weights", name)

    def constant(self, name: str) -> Array:
        """Return a tensor that is no part of the state dictionary, by its name in the model."""
        return self._tensor("constants", name)

    def _tensor(self, folder: str, name: str) -> Array:
        """Return a tensor that a table names.

        Raises:
            ModelFileError: it is not there, or lies outside of its member.
            UnsupportedModelError: it is pickled, or of a type that no tensor of the graph has.
        """
        where = f"{self.file}: {folder} {brief(name)!r}"
        entry = self._table(folder).get(name)
        if entry is None:
            raise ModelFileError("the archive does not contain it", where=where, fix=_NEWER)
        has_numbers = entry.fields.get("tensor_meta", {}) is not None
        if entry.flag("use_pickle", False) or not has_numbers:
            raise UnsupportedModelError(
                "it is a pickled object of Python, which could run any code",
                where=where,
                legal="tensors that are stored as their bytes",
                fix="keep plain tensors in the model: no script objects, subclasses of tensors or"
                " sparse tensors",
            )
        data = self._read(f"data/{folder}/{entry.text('path_name')}", MAX_TENSOR_BYTES)
        return _strided(data, entry.record("tensor_meta"), self.order, where, self.room)

    def _table(self, folder: str) -> Mapping[str, Record]:
        if folder not in self.tables:
            name = f"data/{folder}/model_{folder}_config.json"
            if name not in self.members:
                raise ModelFileError(
                    f"it has no {name}", where=self.file,
                    legal="an archive as PyTorch 2.9 and later write it", fix=_NEWER,
                )  # fmt: skip
            record = parse_record(self._read(name, _MOST_JSON), self.file, name)
            self.tables[folder] = dict(record.named("config"))
        return self.tables[folder]

    def _read(self, name: str, most: int) -> bytes:
        """Return the bytes of a member."""
        member = self.members.get(name)
        where = f"{self.file}: {brief(name)}"
        if member is None:
            raise ModelFileError("the archive does not contain it", where=where, fix=_NEWER)
        if member.file_size > most:
            raise ModelFileError(
                f"it has {member.file_size} bytes", where=where, legal=f"at most {most}"
            )
        try:
            return self.container.read(member)
        except Exception as error:  # noqa: BLE001  # what zipfile raises is part of no list
            raise ModelFileError(
                f"it cannot be read: {brief(str(error))}", where=where, fix="save the model again"
            ) from None

    def _not_one(self, models: list[str]) -> MicrotirError:
        if models:
            names = ", ".join(brief(name) for name in models[:4])
            return UnsupportedModelError(
                f"it holds {len(models)} programs: {names}",
                where=self.file, legal="one program", fix=_SAVE,
            )  # fmt: skip
        is_compiled = any(name.startswith("data/aotinductor/") for name in self.members)
        what = "it holds only a compiled program" if is_compiled else "it holds no program"
        return ModelFileError(
            what, where=self.file, legal="models/model.json in the archive", fix=_NEWER
        )


def open_archive(data: bytes, file: str) -> Archive:
    """Return what an archive holds.

    Args:
        data: all of it.
        file: its name, for messages.

    Raises:
        ModelFileError: it is damaged, compressed, or of another kind.
    """
    try:
        container = zipfile.ZipFile(io.BytesIO(data))
        entries = container.infolist()
    except Exception as error:  # noqa: BLE001  # what zipfile raises is part of no list
        raise _damaged(f"its zip archive is damaged: {brief(str(error))}", file) from None
    if len(entries) > _MOST_MEMBERS:
        raise _damaged(f"it has {len(entries)} members", file)
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise _damaged("members of its zip archive are compressed", file)
    if sum(max(entry.file_size, 0) for entry in entries) > len(data):
        raise _damaged("its members are larger than the file", file)
    members = {entry.filename.partition("/")[2]: entry for entry in entries}
    if len({entry.filename.partition("/")[0] for entry in entries}) != 1 or len(members) < len(
        entries
    ):
        raise _damaged("its members are not all in one folder, or one occurs twice", file)
    archive = Archive(file, members, "<", container, len(data), _Room(_BYTES_EACH * len(data)))
    order = archive._read("byteorder", 16) if "byteorder" in members else b"little"
    if order not in (b"little", b"big"):
        raise _damaged(f"its byte order is {order[:16]!r}", file)
    return replace(archive, order="<" if order == b"little" else ">")


def _damaged(what: str, file: str) -> ModelFileError:
    return ModelFileError(what, where=file, legal="what torch.export.save writes", fix=_NEWER)


def _strided(data: bytes, meta: Record, order: Literal["<", ">"], where: str, room: _Room) -> Array:
    """Return a tensor in the bytes of a storage; types that the graph lacks become float32.

    Raises:
        ModelFileError: it does not lie within them.
        UnsupportedModelError: it is of a type that is not read.
    """
    stored = stored_type(meta.integer("dtype"), where)
    sizes, strides = _extents(meta, "sizes"), _extents(meta, "strides")
    (first,) = _extents(Record({"": [meta.fields.get("storage_offset")]}, meta.file, where), "")
    shape = tuple(sizes)
    count = math.prod(shape)
    is_plain = meta.integer("layout") == _STRIDED
    if not is_plain or len(sizes) != len(strides) or len(sizes) > MAX_RANK:
        raise meta.malformed(f"a tensor of sizes {shape} with strides {tuple(strides)}")
    last = first + sum((n - 1) * stride for n, stride in zip(sizes, strides, strict=True))
    size = np.dtype(stored.held).itemsize
    if count and (last + 1) * size > len(data):
        raise ModelFileError(
            f"its last element has the index {last} in a member of {len(data)} bytes", where=where,
            legal=f"elements of {size} bytes that lie in the member", fix="save the model again",
        )  # fmt: skip
    room.take(count * max(size, stored.dtype.bytes), where)
    if not count:
        return np.zeros(shape, stored.dtype.value)
    flat = np.frombuffer(data, np.dtype(stored.held).newbyteorder(order), len(data) // size)
    steps = tuple(stride * size for stride in strides)
    view = np.lib.stride_tricks.as_strided(flat[first:], shape, steps, writeable=False)
    return stored.values(view)


def _extents(meta: Record, name: str) -> list[int]:
    """Return sizes, strides or an offset: numbers that are known and not below 0."""
    numbers = []
    for item in meta.items(name):
        kind, value = meta.inner(item).only()
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if kind != "as_int" or not is_number or not 0 <= value < 1 << 40:  # type: ignore[operator]
            raise meta.wrong(name, "integers of 0 or more")
        assert isinstance(value, int)
        numbers.append(value)
    return numbers
