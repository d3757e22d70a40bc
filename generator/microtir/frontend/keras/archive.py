"""Take a Keras file as a container: its configuration as JSON, and its weights as HDF5.

Keras 3 writes a zip archive, older versions one HDF5 file with the configuration in an attribute.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from dataclasses import dataclass
from typing import TypeAlias

from microtir.errors import ModelFileError
from microtir.frontend.keras.hdf5 import SAVE_AGAIN, Hdf5File, open_hdf5
from microtir.support.reading import WrongDataError, parse_json

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A value of a configuration."""

_HDF5 = b"\x89HDF\r\n\x1a\n"
_CONFIG, _WEIGHTS = "config.json", "model.weights.h5"
_MOST_CONFIG_BYTES = 1 << 26
_MOST_MEMBERS = 1 << 12
_MOST_PACKED = 1 << 28  # bytes of a member that is compressed, which a few bytes can stand for
_MOST_DEPTH = 200  # of lists and objects in each other


@dataclass(frozen=True, slots=True)
class KerasArchive:
    """A model file.

    Args:
        file: its name, for messages.
        sha256: of its bytes.
        size: in bytes.
        config: of the model.
        weights: of its layers.
        is_legacy: whether it is one HDF5 file, which names weights by their layers.
    """

    file: str
    sha256: str
    size: int
    config: Json
    weights: Hdf5File
    is_legacy: bool


def open_archive(data: bytes, file: str) -> KerasArchive:
    """Read the container of a model.

    Raises:
        ToolError: the package `h5py` is not installed.
        ModelFileError: it is no Keras model, or damaged.
    """
    if data.startswith(_HDF5):
        weights, is_legacy = open_hdf5(data, file), True
        text = weights.text("", "model_config")
        if text is None:
            raise ModelFileError(
                "the file holds weights and no model",
                where=file,
                legal="a whole model",
                fix="save the whole model with model.save, not with save_weights",
            )
    else:
        text, packed = _members(data, file)
        weights, is_legacy = open_hdf5(packed, file), False
    digest = hashlib.sha256(data).hexdigest()
    return KerasArchive(file, digest, len(data), _parsed(text, file), weights, is_legacy)


def _members(data: bytes, file: str) -> tuple[str, bytes]:
    """Return the configuration and the weights of a zip archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if len(archive.infolist()) > _MOST_MEMBERS:
                raise ModelFileError("the archive has too many members", where=file,
                                     legal=f"at most {_MOST_MEMBERS}", fix=SAVE_AGAIN)  # fmt: skip
            config = _member(archive, _CONFIG, _MOST_CONFIG_BYTES, file)
            weights = _member(archive, _WEIGHTS, len(data), file)
            return config.decode("utf-8"), weights
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError, ValueError,
            zlib.error) as error:  # fmt: skip
        raise ModelFileError(
            f"the archive is damaged: {' '.join(str(error).split())[:200]}", where=file,
            fix=SAVE_AGAIN,
        ) from None  # fmt: skip


def _member(archive: zipfile.ZipFile, name: str, most: int, file: str) -> bytes:
    """Return a member; a compressed one is no larger than a limit, whatever the archive says."""
    entries = [entry for entry in archive.infolist() if entry.filename == name]
    if len(entries) != 1:
        raise ModelFileError(
            f"the archive has {len(entries) or 'no'} members with the name {name!r}", where=file,
            legal=f"{_CONFIG} and {_WEIGHTS}, each once", fix=SAVE_AGAIN,
        )  # fmt: skip
    most = most if entries[0].compress_type == zipfile.ZIP_STORED else max(most, _MOST_PACKED)
    with archive.open(entries[0]) as member:
        content = member.read(most + 1)
    if len(content) > most:
        raise ModelFileError(
            f"the member {name!r} has more than {most} bytes", where=file, legal=f"at most {most}",
            fix=SAVE_AGAIN,
        )  # fmt: skip
    return content


def _parsed(text: str, file: str) -> Json:
    """Return what a text says as JSON, nested no deeper than anything that walks over it."""
    try:
        config: Json = parse_json(text)
    except WrongDataError as error:
        raise ModelFileError(
            f"its configuration: {error.what}", where=file, fix=SAVE_AGAIN
        ) from None
    level, depth = [config], 0
    while level:
        depth += 1
        inner = (v for v in level if isinstance(v, list | dict))
        level = [item for v in inner for item in (v.values() if isinstance(v, dict) else v)]
        if depth > _MOST_DEPTH:
            raise ModelFileError(
                f"its configuration is nested {depth} deep", where=file,
                legal=f"at most {_MOST_DEPTH}", fix=SAVE_AGAIN,
            )  # fmt: skip
    return config
