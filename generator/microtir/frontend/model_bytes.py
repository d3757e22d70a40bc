"""The bytes of a model file, and one error for all that keeps it from being read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from microtir.errors import MicrotirError, ModelFileError, UnsupportedModelError
from microtir.frontend.c_array import model_in_c
from microtir.frontend.file_kinds import refuse_folder

ModelSource: TypeAlias = str | Path | bytes | bytearray | memoryview
"""The path of a model file, or its bytes."""

_MAX_FILE_BYTES = (1 << 31) - 1  # the limit of FlatBuffers and of protocol buffers


@dataclass(frozen=True, slots=True)
class ModelBytes:
    """The bytes of a model with the file name for messages and the default graph name."""

    data: bytes
    file: str
    stem: str


def load(source: ModelSource) -> ModelBytes:
    """Read a file, or take bytes as they are; of a C file the array that holds a model.

    Raises:
        ModelFileError: there is no such file, it is not a regular file, it cannot be read, or it
            is a C file with several models.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        return ModelBytes(bytes(source), "model", "model")
    path = Path(source)
    try:
        return ModelBytes(model_in_c(_read(path), path.name), path.name, path.stem)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelFileError(
            f"the model cannot be read: {reason.lower()}",
            where=str(path),
            fix="check the path and its permissions",
        ) from None


def _read(path: Path) -> bytes:
    if not path.exists():
        raise ModelFileError(
            "there is no such file", where=str(path), fix="check the spelling of the path"
        )
    # A device or a pipe may never end, and a folder has no bytes.
    if path.is_dir():
        refuse_folder(path)
    if not path.is_file():
        raise ModelFileError(
            "this is not a regular file",
            where=str(path),
            legal="a .tflite, .onnx, .keras or .pt2 file",
            fix="pass the model file",
        )
    size = path.stat().st_size
    if size > _MAX_FILE_BYTES:
        raise ModelFileError(
            f"the file has {size} bytes", where=str(path), legal=f"at most {_MAX_FILE_BYTES}"
        )
    return path.read_bytes()


def summary(model: ModelBytes, problems: list[MicrotirError]) -> MicrotirError:
    """Return one error for all problems; damage goes before what is merely not supported."""
    for problem in problems:
        if isinstance(problem, ModelFileError):
            return problem
    noun = "problem" if len(problems) == 1 else "problems"
    return UnsupportedModelError(
        f"the model is not supported, {len(problems)} {noun}",
        where=model.file,
        problems=problems,
    )
