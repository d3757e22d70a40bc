"""Recognises the kind of a file that is no TFLite model, by its content first, then by its name."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from microtir.errors import ModelFileError

_HEAD = 1 << 16  # bytes that are looked at

_INDENT = " " * 12  # of what follows "  fix:      "

_CONVERSION = """\
convert it in Python with TensorFlow, with int8 and a batch of 1 (docs/from-keras.md):
import tensorflow as tf
{load}
converter.optimizations = [tf.lite.Optimize.DEFAULT]
converter.representative_dataset = samples  # yields [input], as the model gets them
converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
converter.inference_input_type = converter.inference_output_type = tf.int8
open("model.tflite", "wb").write(converter.convert())"""

_LOAD_SAVED = 'converter = tf.lite.TFLiteConverter.from_saved_model("{file}")'


def _conversion(load: str) -> str:
    return _CONVERSION.replace("{load}", load).replace("\n", "\n" + _INDENT)


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file that people have in the place of a TFLite model."""

    title: str
    fix: str


_KERAS = FileKind(
    "a Keras model",
    "pass it to microtir as it is, or read it with microtir.frontend.from_keras"
    " (docs/from-keras.md)",
)
_SAVED = FileKind("a TensorFlow SavedModel", _conversion(_LOAD_SAVED))
_PYTORCH = FileKind(
    "a PyTorch model",
    "it may hold a pickle, which could run any code: load it in Python, and save the program with"
    " torch.export.save(torch.export.export(model.eval(), inputs), 'model.pt2'), as "
    "docs/from-pytorch.md shows",
)
_PICKLE = FileKind(
    "a pickled object of Python, such as a model of scikit-learn",
    "load it, and export it to ONNX with skl2onnx, as docs/from-scikit-learn.md shows",
)
_ONNX = FileKind(
    "an ONNX model",
    "read it with microtir.frontend.from_onnx",
)
_MODELS = "a .tflite, .onnx, .keras or .pt2 file"
_OTHER = "pass the .tflite file that the TFLite converter wrote, or the .onnx file of an exporter"

_KINDS = {
    "onnx": _ONNX,
    "ort": FileKind("an ONNX Runtime model", "pass the .onnx file that it was made from"),
    "keras": _KERAS,
    "saved": FileKind(_SAVED.title, _SAVED.fix.replace("{file}", "the folder that holds it")),
    "graph": FileKind(
        "a frozen TensorFlow graph",
        "convert the model that it was frozen from: tf.lite.TFLiteConverter.from_saved_model(...),"
        " with full integer quantisation and a batch of 1 (docs/from-keras.md)",
    ),
    "pytorch": _PYTORCH,
    "pickle": _PICKLE,
    "executorch": FileKind(
        "an ExecuTorch program",
        "save the model before it is lowered: torch.export.save(exported_program, 'model.pt2')",
    ),
    "tosa": FileKind("a TOSA graph", _OTHER),
    "numpy": FileKind("a file of numpy arrays", _OTHER),
    "c": FileKind(
        "a C source file without an array of a TFLite model",
        "pass the .tflite file, or a C file with all of its bytes as numbers, as xxd -i writes it",
    ),
    "zip": FileKind("a zip archive", "unpack it, and pass the .tflite file in it"),
    "gzip": FileKind("a compressed file", "unpack it, and pass the .tflite file in it"),
    "tar": FileKind("a tar archive", "unpack it, and pass the .tflite file in it"),
    "web": FileKind(
        "a web page", "download the file itself: the link that ends in .tflite, or its raw form"
    ),
    "lfs": FileKind("a pointer of Git LFS", "get the file itself: git lfs pull"),
}

# Content: where these bytes are, the file is that.
_MAGIC = (
    (0, b"\x89HDF\r\n\x1a\n", "keras"),
    (4, b"ORTM", "ort"),
    (4, b"ET1", "executorch"),
    (4, b"TOSA", "tosa"),
    (0, b"\x80\x02", "pytorch"),
    (0, b"\x80\x03", "pickle"),  # newer protocols, which torch.save does not use
    (0, b"\x80\x04", "pickle"),
    (0, b"\x80\x05", "pickle"),
    (0, b"\x93NUMPY", "numpy"),
    (0, b"version https://git-lfs", "lfs"),
    (0, b"\x1f\x8b", "gzip"),
    (257, b"ustar", "tar"),
)

# Members by which a zip archive is one of these; names come uncompressed.
_MEMBERS = (
    (b"model.weights.h5", "keras"),
    (b"config.json", "keras"),
    (b"/data.pkl", "pytorch"),
    (b".npy", "numpy"),
)

# A member of programs of torch.export, today's and older ones; weights may lie before it.
_PROGRAM_MEMBERS = (b"/archive_format", b"serialized_exported_program.json")

_SUFFIXES = {
    ".onnx": "onnx", ".ort": "ort", ".h5": "keras", ".hdf5": "keras", ".keras": "keras",
    ".pb": "graph", ".pbtxt": "graph", ".pt": "pytorch", ".pth": "pytorch", ".pt2": "pytorch",
    ".ckpt": "pytorch", ".pkl": "pickle", ".pickle": "pickle", ".joblib": "pickle",
    ".pte": "executorch", ".tosa": "tosa", ".npz": "numpy", ".npy": "numpy",
    ".zip": "zip", ".gz": "gzip", ".tar": "tar", ".tgz": "gzip", ".c": "c", ".cc": "c",
    ".cpp": "c", ".h": "c", ".html": "web",
}  # fmt: skip


def refuse_other_kind(data: bytes, file: str) -> None:
    """Refuse a file that is something else than a TFLite model.

    Raises:
        ModelFileError: says what it is and what to do, or what a TFLite model begins with.
    """
    content, name = _by_content(data[:_HEAD]), _SUFFIXES.get(Path(file).suffix.lower(), "")
    # Several formats are zip archives.
    kind = _KINDS.get(name if content == "zip" and name else content or name)
    if kind is not None:
        raise _error(file, kind, file)
    raise ModelFileError(
        "this is not a TFLite model: its file identifier is missing",
        where=file,
        legal=f"'TFL3' as bytes 4 to 7 of a TFLite file, or {_MODELS}",
        fix=_OTHER,
    )


class ModelFormat(Enum):
    """A format of model files that is read."""

    TFLITE = "TFLite"
    ONNX = "ONNX"
    KERAS = "Keras"
    TORCH = "PyTorch"


def format_of(data: bytes, file: str) -> ModelFormat:
    """Return the format of a file, by its content or, if that says nothing, its name.

    What is no model counts as TFLite, whose reader says what it is.
    """
    kind = _by_content(data[:_HEAD])
    if data[4:8] == b"TFL3":
        return ModelFormat.TFLITE
    if kind == "onnx" or (not kind and Path(file).suffix.lower() == ".onnx"):
        return ModelFormat.ONNX
    # Tables of an archive of PyTorch are called ..._config.json, too.
    if data[:2] == b"PK" and any(name in data for name in _PROGRAM_MEMBERS):
        return ModelFormat.TORCH
    if kind == "keras" or (kind == "zip" and Path(file).suffix.lower() == ".keras"):
        return ModelFormat.KERAS
    return ModelFormat.TFLITE


def refuse_folder(path: Path) -> None:
    """Refuse a folder.

    Raises:
        ModelFileError: says what it holds, and what to do.
    """
    if any((path / name).is_file() for name in ("saved_model.pb", "saved_model.pbtxt")):
        raise _error(str(path), _SAVED, str(path))
    raise ModelFileError(
        "this is a folder", where=str(path), legal=_MODELS, fix="pass the model file"
    )


def _error(where: str, kind: FileKind, name: str) -> ModelFileError:
    fix = kind.fix.replace("{file}", name)
    return ModelFileError(
        f"this is {kind.title}, not a TFLite model", where=where, legal=_MODELS, fix=fix
    )


def _by_content(head: bytes) -> str:
    """Return what a file is by its first bytes; empty if they do not say."""
    for offset, magic, kind in _MAGIC:
        if head[offset : offset + len(magic)] == magic:
            return kind
    if head[:2] == b"PK":
        return next((kind for name, kind in _MEMBERS if name in head), "zip")
    if head.lstrip()[:9].lower() in (b"<!doctype", b"<html>") or head.lstrip()[:5] == b"<html":
        return "web"
    # Protocol buffers that begin with a version: ONNX has had 3 and later ones, SavedModel has 1.
    if head[:1] == b"\x08" and head[2:3] in (b"\x12", b"\x1a", b"\x3a", b"\x42"):
        return "onnx" if 3 <= head[1] < 32 else "saved" if head[:3] == b"\x08\x01\x12" else ""
    return ""
