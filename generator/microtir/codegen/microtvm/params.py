"""Reads and writes arrays by name as TVM serialises parameters: a list of NDArrays.

    bytes  of the list
        8  0xF7E58D4F05049CB7
        8  0, reserved
        8  number of names; of each: 8 bytes for its length, then its characters
        8  number of arrays; of each, in the order of the names:
    bytes  of an array
        8  0xDD5E40F096B4A13F
        8  0, reserved
    4 + 4  kind and number of a device: 1 and 0, the processor
        4  number of dimensions
    1+1+2  kind of elements (0 signed, 1 unsigned, 2 float), their bits, lanes
    8 * n  extents
        8  bytes of the elements
           the elements, row-major

Numbers are little-endian. Entries are sorted by name, as TVM's dictionaries of parameters are.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from microtir.errors import ModelFileError

_LIST_MAGIC = 0xF7E58D4F05049CB7
_ARRAY_MAGIC = 0xDD5E40F096B4A13F
_CPU = (1, 0)
_KINDS = {"i": 0, "u": 1, "f": 2}
_MAX_RANK = 32  # more than any model has

Arrays = Mapping[str, npt.NDArray[np.generic]]


def to_params(arrays: Arrays) -> bytes:
    """Return the file of parameters that holds these arrays; of bool as bytes without sign."""
    names = sorted(arrays)
    parts = [struct.pack("<QQQ", _LIST_MAGIC, 0, len(names))]
    for name in names:
        text = name.encode()
        parts += [struct.pack("<Q", len(text)), text]
    parts.append(struct.pack("<Q", len(names)))
    parts += [_serialised(arrays[name]) for name in names]
    return b"".join(parts)


def _serialised(array: npt.NDArray[np.generic]) -> bytes:
    values = array.astype(np.uint8) if array.dtype == np.bool_ else array
    values = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    kind = (_KINDS[values.dtype.kind], values.dtype.itemsize * 8, 1)
    header = struct.pack("<QQiiiBBH", _ARRAY_MAGIC, 0, *_CPU, array.ndim, *kind)
    extents = struct.pack(f"<{array.ndim}q", *array.shape)
    return header + extents + struct.pack("<q", values.nbytes) + values.tobytes()


def from_params(content: bytes, where: str) -> dict[str, npt.NDArray[np.generic]]:
    """Return the arrays of a file of parameters by name.

    Args:
        content: the file.
        where: what an error calls it.

    Raises:
        ModelFileError: it is no such file, or damaged.
    """
    reader = _Reader(content, where)
    reader.expect("<QQ", (_LIST_MAGIC, 0), "the file does not begin like a list of arrays")
    names = [reader.text() for _ in range(reader.count())]
    if reader.count() != len(names):
        raise reader.damaged("the file has a different number of arrays than of names")
    if len(set(names)) != len(names):
        raise reader.damaged("a name occurs twice")
    arrays = {name: reader.array() for name in names}
    if reader.place != len(content):
        raise reader.damaged(f"{len(content) - reader.place} bytes follow the last array")
    return arrays


class _Reader:
    """Takes values from a file, of which nothing is believed."""

    def __init__(self, content: bytes, where: str) -> None:
        self.content, self.where, self.place = content, where, 0

    def damaged(self, what: str) -> ModelFileError:
        return ModelFileError(
            what,
            where=self.where,
            legal="parameters as TVM serialises them: save_param_dict() of TVM, or an archive",
            fix="write the file again",
        )

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self.content) - self.place:
            raise self.damaged(f"the file ends too early, at byte {self.place}")
        self.place += size
        return self.content[self.place - size : self.place]

    def values(self, form: str) -> tuple[int, ...]:
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def expect(self, form: str, wanted: tuple[int, ...], problem: str) -> None:
        if self.values(form) != wanted:
            raise self.damaged(problem)

    def count(self) -> int:
        [value] = self.values("<Q")
        if value > len(self.content):
            raise self.damaged(f"the file claims to have {value} entries")
        return value

    def text(self) -> str:
        try:
            return self.take(self.count()).decode()
        except UnicodeDecodeError:
            raise self.damaged("a name is not text") from None

    def array(self) -> npt.NDArray[np.generic]:
        self.expect("<QQ", (_ARRAY_MAGIC, 0), f"no array begins at byte {self.place}")
        *_, rank, code, bits, lanes = self.values("<iiiBBH")
        kinds = {number: kind for kind, number in _KINDS.items()}
        if not 0 <= rank <= _MAX_RANK or code not in kinds or lanes != 1 or bits % 8 or not bits:
            raise self.damaged(f"an array has {rank} dimensions, kind {code}, {bits} bits")
        extents = self.values(f"<{rank}q")
        [size] = self.values("<q")
        data = self.take(size)
        try:
            dtype = np.dtype(f"<{kinds[code]}{bits // 8}")
            return np.frombuffer(data, dtype).reshape(extents)
        except (TypeError, ValueError):
            raise self.damaged(f"an array of {extents} cannot have {size} bytes") from None
