"""Values of a model that lie in another file: that of its own folder, and no other one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from microtir.errors import ModelFileError
from microtir.graph.names import brief

if TYPE_CHECKING:
    import onnx

_KEEP = (
    "keep the file of external data beside the model, and pass the path of the model; or write one "
    'file: onnx.save(onnx.load("MODEL"), "whole.onnx")'
)


def take_in(tensor: onnx.TensorProto, folder: Path | None, where: str) -> None:
    """Give a tensor the bytes that lie in another file.

    Args:
        tensor: says which file, and where in it.
        folder: that of the model; None where bytes were given and no path.
        where: the tensor in words, for errors.

    Raises:
        ModelFileError: the file is not in the folder, or cannot be read.
    """
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = brief(entries.get("location", ""))
    path, offset, length = _place(entries, folder, where)
    try:
        with path.open("rb") as stream:
            stream.seek(offset)
            data = stream.read(length)
    except (OSError, ValueError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelFileError(
            f"its values lie in {location!r}, which cannot be read: {reason.lower()}",
            where=where,
            fix=_KEEP,
        ) from None
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    tensor.raw_data = data


def _place(entries: Mapping[str, str], folder: Path | None, where: str) -> tuple[Path, int, int]:
    """Return file, offset and length."""
    location = entries.get("location", "")
    if folder is not None:
        folder = folder.resolve()
        try:
            path = (folder / location).resolve()
            offset, length = int(entries.get("offset", 0)), int(entries.get("length", -1))
        except (ValueError, OSError, RuntimeError):
            path, offset, length = folder, -1, -1
        if path.is_relative_to(folder) and path.is_file() and offset >= 0:
            return path, offset, length
    raise ModelFileError(
        f"its values lie in {brief(location)!r}",
        where=where,
        legal="a file in the folder of the model",
        fix=_KEEP,
    )
