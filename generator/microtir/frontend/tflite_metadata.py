"""Read what tools leave in a TFLite file beside the model: named buffers of bytes."""

from __future__ import annotations

import numpy as np

from microtir.errors import ModelFileError
from microtir.frontend.flatbuffer import FlatbufferTable, ScalarType

_PLAN = "OfflineMemoryAllocation"
_BUFFERS, _METADATA = 4, 6
_HEADER = 3  # version, number of subgraphs, number of offsets: 4 bytes each


def planned_offsets(root: FlatbufferTable) -> tuple[int, ...]:
    """Return where a file places its tensors in one memory; -1 for one that it does not place.

    The tensors of all subgraphs come one after another. Nothing is returned where there is no such
    plan, or where it cannot be read: few models need it, and those say that it is missing.
    """
    try:
        data = _named(root, _PLAN)
    except ModelFileError:
        return ()
    header = 4 * _HEADER
    if len(data) < header or int.from_bytes(data[header - 4 : header], "little") * 4 != (
        len(data) - header
    ):
        return ()
    root.buffer.charge(len(data), _PLAN)
    return tuple(np.frombuffer(data[header:], "<i4").tolist())


def _named(root: FlatbufferTable, name: str) -> bytes:
    """Return the bytes under a name; none where there is nothing of that name."""
    for index in range(root.count(_METADATA)):
        entry = root.item(_METADATA, index, f"metadata {index}")
        number = entry.scalar(1, ScalarType.UINT32)
        if entry.string(0) == name and number < root.count(_BUFFERS):
            buffer = root.item(_BUFFERS, number, f"buffer {number} of metadata {index}")
            return bytes(buffer.raw(0) or b"")
    return b""
