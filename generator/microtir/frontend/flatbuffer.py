"""Bounds-checked reading of FlatBuffers: a file is data from a stranger.

Generated FlatBuffers code follows offsets wherever they point.  Here every offset, length and
field lies inside the file before it is read, and the sum of all that is decoded is bounded: small
tables may share one long vector, and a few kilobytes of file must not become gigabytes of lists.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from microtir.errors import ModelFileError

_REPAIR = "export or download the model again; the file is damaged or was cut short"
_TABLE_COST = 16  # bytes of a table with its entry in a vector, at the least
_SHARING = 4  # how often, on average, a byte of the file may be decoded
_FREE_BYTES = 1 << 16


class ScalarType(Enum):
    """Storage of a scalar: its form in the `struct` module, and so its size."""

    BOOL = "<?"
    INT8 = "<b"
    UINT8 = "<B"
    UINT16 = "<H"
    INT32 = "<i"
    UINT32 = "<I"
    UINT64 = "<Q"
    FLOAT32 = "<f"

    def __init__(self, form: str) -> None:
        self.layout = struct.Struct(form)


class FlatBuffer:
    """The bytes of a file, read only within their bounds.

    Args:
        data: the whole file; views of it are handed out, so it must not change.
        file: name for errors.
    """

    def __init__(self, data: bytes, file: str) -> None:
        self.view = memoryview(data)
        self.file = file
        self._decodable = _SHARING * len(data) + _FREE_BYTES

    def malformed(self, where: str, what: str) -> ModelFileError:
        """Return the error for a file that breaks the format at the place `where` inside it."""
        place = f"{self.file}: {where}" if where else self.file
        return ModelFileError(what, where=place, fix=_REPAIR)

    def charge(self, size: int, where: str) -> None:
        """Count `size` decoded bytes; see the module's docstring."""
        self._decodable -= size
        if self._decodable < 0:
            raise self.malformed(where, "the file refers to the same parts too many times")

    @property
    def is_spent(self) -> bool:
        """Return whether more was decoded than a file may ask for: nothing more is read."""
        return self._decodable < 0

    def span(self, start: int, size: int, where: str) -> memoryview:
        """Return the bytes [start, start + size), or an error if they are not in the file."""
        end = start + size
        if not 0 <= start <= end <= len(self.view):
            raise self.malformed(
                where, f"bytes {start} to {end} are outside the file's {len(self.view)} bytes"
            )
        return self.view[start:end]

    def scalar(self, kind: ScalarType, position: int, where: str) -> Any:
        """Return the scalar at `position`; little endian, at any alignment."""
        layout = kind.layout
        if not 0 <= position <= len(self.view) - layout.size:
            self.span(position, layout.size, where)
        return layout.unpack_from(self.view, position)[0]

    def root(self, where: str) -> FlatbufferTable:
        return FlatbufferTable(self, self.scalar(ScalarType.UINT32, 0, where), where)


class FlatbufferTable:
    """One table; fields are found by their slot, the position in the schema.

    Args:
        buffer: the file.
        position: of the table in it.
        where: names the table in errors.
    """

    __slots__ = ("_layout", "_position", "_size", "buffer", "where")

    def __init__(self, buffer: FlatBuffer, position: int, where: str) -> None:
        buffer.charge(_TABLE_COST, where)
        self.buffer = buffer
        self.where = where
        self._position = position
        layout = position - buffer.scalar(ScalarType.INT32, position, where)
        layout_size = buffer.scalar(ScalarType.UINT16, layout, where)
        self._size = buffer.scalar(ScalarType.UINT16, layout + 2, where)
        if layout_size < 4 or layout_size % 2 or self._size < 4:
            raise buffer.malformed(where, "the table's layout is damaged")
        self._layout = buffer.span(layout + 4, layout_size - 4, where)
        buffer.span(position, self._size, where)

    def present(self) -> Iterator[int]:
        """Yield slots of the fields that are stored, in order."""
        offsets = struct.iter_unpack("<H", self._layout)
        return (slot for slot, (offset,) in enumerate(offsets) if offset)

    def scalar(self, slot: int, kind: ScalarType, default: Any = 0) -> Any:
        """Return the value of a scalar field, `default` where it is not stored."""
        position = self._field(slot, kind.layout.size)
        if position is None:
            return default
        return self.buffer.scalar(kind, position, self.where)

    def table(self, slot: int, where: str) -> FlatbufferTable | None:
        position = self._target(slot)
        return None if position is None else FlatbufferTable(self.buffer, position, where)

    def raw(self, slot: int, item_size: int = 1) -> memoryview | None:
        """Return a view of a vector's bytes, not counted as decoded."""
        position = self._target(slot)
        if position is None:
            return None
        length = self.buffer.scalar(ScalarType.UINT32, position, self.where)
        return self.buffer.span(position + 4, length * item_size, self.where)

    def numbers(self, slot: int, dtype: npt.DTypeLike) -> tuple[Any, ...]:
        """Return a vector of scalars as Python numbers; empty where it is not stored."""
        kind = np.dtype(dtype).newbyteorder("<")
        view = self.raw(slot, kind.itemsize)
        if view is None:
            return ()
        self.buffer.charge(len(view), self.where)
        return tuple(np.frombuffer(view, dtype=kind).tolist())

    def string(self, slot: int) -> str:
        """Return a string; bytes that are not UTF-8 become replacement characters."""
        view = self.raw(slot)
        if view is None:
            return ""
        self.buffer.charge(len(view), self.where)
        return bytes(view).decode("utf-8", errors="replace")

    def count(self, slot: int) -> int:
        view = self.raw(slot, 4)
        return 0 if view is None else len(view) // 4

    def item(self, slot: int, index: int, where: str) -> FlatbufferTable:
        view = self.raw(slot, 4)
        size = 0 if view is None else len(view) // 4
        start = self._target(slot)
        if start is None or index >= size:
            raise self.buffer.malformed(where, f"there are only {size} of them in the file")
        position = start + 4 + 4 * index
        offset = self.buffer.scalar(ScalarType.UINT32, position, where)
        return FlatbufferTable(self.buffer, position + offset, where)

    def _field(self, slot: int, size: int) -> int | None:
        if 2 * slot + 2 > len(self._layout):
            return None
        (offset,) = struct.unpack_from("<H", self._layout, 2 * slot)
        if offset == 0:
            return None
        if offset < 4 or offset + size > self._size:
            raise self.buffer.malformed(self.where, f"field {slot} lies outside its table")
        return self._position + int(offset)

    def _target(self, slot: int) -> int | None:
        position = self._field(slot, 4)
        if position is None:
            return None
        return position + int(self.buffer.scalar(ScalarType.UINT32, position, self.where))
