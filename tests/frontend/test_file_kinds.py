"""A file that is no TFLite model is named for what it is, with what to do."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from microtir.errors import ModelFileError
from microtir.frontend import from_tflite


def zipped(*members: str) -> bytes:
    """A zip archive of empty files."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for member in members:
            archive.writestr(member, "")
    return stream.getvalue()


def numpy_file() -> bytes:
    """An array as numpy stores it."""
    stream = io.BytesIO()
    np.save(stream, np.zeros(3))
    return stream.getvalue()


ONNX = b"\x08\x09\x12\x07pytorch\x1a\x052.4.0"
HDF5 = b"\x89HDF\r\n\x1a\n" + bytes(64)

CONTENT = [
    (ONNX, "an ONNX model", "from_onnx"),
    (HDF5, "a Keras model", "from_keras"),
    (zipped("metadata.json", "config.json", "model.weights.h5"), "a Keras model", "from_keras"),
    (zipped("net/data.pkl", "net/byteorder"), "a PyTorch model", "torch.export.save"),
    (zipped("x.npy"), "a file of numpy arrays", ".tflite"),
    (zipped("model.tflite"), "a zip archive", "unpack it"),
    (b"\x08\x01\x12\x90" + bytes(40), "a TensorFlow SavedModel", "from_saved_model"),
    (b"\x10\0\0\0ORTM" + bytes(40), "an ONNX Runtime model", "the .onnx file"),
    (b"\x10\0\0\0ET12" + bytes(40), "an ExecuTorch program", "torch.export.save"),
    (b"\x10\0\0\0TOSA" + bytes(40), "a TOSA graph", ".tflite"),
    (b"\x80\x02}q\0" + bytes(9), "a PyTorch model", "torch.export.save"),
    (pickle.dumps({"trees": []}), "a pickled object of Python", "docs/from-scikit-learn.md"),
    (HDF5, "a Keras model", "docs/from-keras.md"),
    (b"\x80\x02}q\0" + bytes(9), "a PyTorch model", "docs/from-pytorch.md"),
    (numpy_file(), "a file of numpy arrays", ".tflite"),
    (b"\n<!DOCTYPE html><html>", "a web page", "download the file itself"),
    (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS", "git lfs pull"),
    (b"\x1f\x8b\x08\0\0\0\0\0", "a compressed file", "unpack it"),
]


@pytest.mark.parametrize(("data", "title", "fix"), CONTENT, ids=[title for _, title, _ in CONTENT])
def test_content_is_recognised(tmp_path: Path, data: bytes, title: str, fix: str) -> None:
    """Whatever its name: "bytes 4 to 7 are b''" told nobody that a file was ONNX."""
    path = tmp_path / "model.tflite"
    path.write_bytes(data)
    with pytest.raises(ModelFileError) as caught:
        from_tflite(path)
    assert caught.value.what.startswith(f"this is {title}")
    assert caught.value.what.endswith(", not a TFLite model")
    assert caught.value.where == "model.tflite"
    assert fix in str(caught.value.fix)


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("m.onnx", "an ONNX model"), ("m.keras", "a Keras model"), ("m.h5", "a Keras model"),
        ("m.pb", "a frozen TensorFlow graph"), ("m.pth", "a PyTorch model"),
        ("m.joblib", "a pickled object of Python"), ("m.pt", "a PyTorch model"),
        ("m.PTE", "an ExecuTorch program"), ("model_data.cc", "a C source file"),
    ],
)  # fmt: skip
def test_else_the_name_decides(tmp_path: Path, name: str, title: str) -> None:
    """Content that says nothing is judged by the suffix."""
    (tmp_path / name).write_bytes(b"12345678")
    with pytest.raises(ModelFileError, match=f"this is {title}.*, not a TFLite model"):
        from_tflite(tmp_path / name)


def test_a_model_by_another_name_is_a_model(tmp_path: Path) -> None:
    """The suffix refuses nothing that is a TFLite file, and names no cut one wrongly."""
    (tmp_path / "m.onnx").write_bytes(b"\x1c\0\0\0TFL3")
    with pytest.raises(ModelFileError) as caught:
        from_tflite(tmp_path / "m.onnx")
    assert "ONNX" not in str(caught.value)


def test_the_code_for_a_saved_model_is_complete(tmp_path: Path) -> None:
    """The lines below the fix are a program that names the folder."""
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\x01\x12")
    with pytest.raises(ModelFileError) as caught:
        from_tflite(tmp_path)
    _, *lines = str(caught.value.fix).splitlines()
    code = "\n".join(line.strip() for line in lines)
    compile(code, "fix", "exec")
    assert f'from_saved_model("{tmp_path}")' in code


def test_a_saved_model_is_a_folder(tmp_path: Path) -> None:
    """Of a SavedModel people pass the folder; any other folder is just one."""
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\x01\x12")
    with pytest.raises(ModelFileError) as caught:
        from_tflite(tmp_path)
    assert "this is a TensorFlow SavedModel" in str(caught.value)
    assert f'from_saved_model("{tmp_path}")' in str(caught.value)
