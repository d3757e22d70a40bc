"""Makes zip archives that are the same bytes each time, on every system."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

_OLDEST = (1980, 1, 1, 0, 0, 0)  # of a zip: files of a package have no other date
_READABLE = 0o100644 << 16  # a plain file, which its owner may write
_UNIX = 3  # the system whose modes those are


def zip_bytes(files: Mapping[str, bytes]) -> bytes:
    """Return an archive of files by path, in the order of their names.

    Nothing is compressed: versions of zlib give other bytes for the same text.
    """
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(files):
            entry = zipfile.ZipInfo(path, _OLDEST)
            entry.external_attr, entry.create_system = _READABLE, _UNIX
            archive.writestr(entry, files[path])
    return stream.getvalue()
