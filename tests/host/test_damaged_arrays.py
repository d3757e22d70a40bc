"""Each command that reads .npz or .npy files refuses one with a damaged header by a diagnostic."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from microtir.errors import DataFileError, ExitCode
from microtir.host.samples import read_arrays
from tests.support.command import FLOAT, INT8, Command


def _with_header(text: bytes, version: bytes = b"\x01\x00") -> bytes:
    """Return a .npy file of 4 bytes with a header of these characters."""
    length = len(text).to_bytes(2 if version[0] == 1 else 4, "little")
    return b"\x93NUMPY" + version + length + text + bytes(4)


def _header(shape: str = "(4,)", descr: str = "'|i1'", order: str = "False") -> bytes:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}\n".encode("latin-1")


# What numpy raises for each: it reads headers as literals of Python.
DAMAGES = {
    "brackets that stay open": _with_header(_header()[:-3]),  # tokenize.TokenError
    "a string that stays open": _with_header(b"{'descr\n"),
    "no literal": _with_header(b"{'descr': }\n"),  # SyntaxError
    "a call": _with_header(b"{'descr': open('x')}\n"),
    "indentation": _with_header(b"  1\n 2\n"),
    "null characters": _with_header(b"{'descr'\x00: 1}\n"),
    "no UTF-8": _with_header(b"{'descr': '\xff\xfe'}\n", b"\x03\x00"),  # UnicodeDecodeError
    "a list": _with_header(b"[1, 2]\n"),
    "keys of several types": _with_header(b"{1: 2, 'descr': 3}\n"),
    "deep brackets": _with_header(b"(" * 4000 + b")" * 4000 + b"\n"),
    "an unknown type": _with_header(_header(descr="'|q9'")),
    "a nested type": _with_header(_header(descr="[('a',)]")),
    "an absurd extent": _with_header(_header(shape=f"({10**30},)")),
    "a negative extent": _with_header(_header(shape="(-4,)")),
    "a word for an extent": _with_header(_header(shape="('4',)")),
    "no order": _with_header(_header(order="'C'")),
    "an empty header": _with_header(b""),
    "an unknown version": _with_header(_header(), b"\x09\x00"),
    "the end within the header": _with_header(_header())[:20],
    "the end behind the magic": b"\x93NUMPY",
}


def npz(content: bytes, name: str = "inputs") -> bytes:
    """Return an archive with one file, for which no array was asked."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(f"{name}.npy", content)
    return stream.getvalue()


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("packed", [bytes, npz], ids=["npy", "npz"])
def test_a_damaged_header_is_a_diagnostic(
    damage: str, packed: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """Whatever numpy, zipfile or Python's own parser raise."""
    path = tmp_path / "damaged"
    path.write_bytes(packed(DAMAGES[damage]))
    with pytest.raises(DataFileError, match="arrays") as caught:
        read_arrays(path)
    assert str(path) in str(caught.value)


def test_the_intact_header_is_read(tmp_path: Path) -> None:
    """The files above differ from a good one in their damage alone."""
    path = tmp_path / "intact"
    for content in (_with_header(_header()), npz(_with_header(_header()))):
        path.write_bytes(content)
        np.testing.assert_array_equal(read_arrays(path)["inputs"], np.zeros(4, np.int8))


PACKAGE = ("--format", "arduino", "--target", "cortex-m4", "-o", "made")
PROJECT = ("-o", "made", "--board", "mps2_an386")
READERS: tuple[tuple[object, ...], ...] = (
    ("verify", INT8, "--golden"),
    ("run", INT8, "--inputs"),
    ("evaluate", INT8, "--dataset"),
    ("package", INT8, *PACKAGE, "--golden"),
    ("micro create-project", INT8, *PROJECT, "--golden"),
    ("quantise", FLOAT, "-o", "made.tflite", "--data"),
    ("compile", FLOAT, "-o", "made", "--quantise"),
    ("report", FLOAT, "-o", "made", "--quantise"),
    ("evidence", FLOAT, "-o", "made", "--quantise"),
    ("package", FLOAT, *PACKAGE, "--quantise"),
    ("micro create-project", FLOAT, *PROJECT, "--quantise"),
)


@pytest.mark.parametrize("reader", READERS, ids=lambda words: f"{words[0]} {words[-1]}")
@pytest.mark.parametrize("damage", ["brackets that stay open", "no literal"])
def test_each_command_names_the_file(
    reader: tuple[object, ...],
    damage: str,
    microtir: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And leaves nothing behind."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "damaged.npz"
    path.write_bytes(npz(DAMAGES[damage]))
    verb, *options = reader
    result = microtir(*str(verb).split(), *options, path)
    assert result.status == ExitCode.ENVIRONMENT, result
    assert "file's arrays cannot be read" in result.diagnostic and str(path) in result.diagnostic
    assert [file.name for file in tmp_path.iterdir()] == ["damaged.npz"]


def test_a_folder_of_samples_names_the_damaged_one(microtir: Command, tmp_path: Path) -> None:
    """`evaluate` reads a file for each sample."""
    path = tmp_path / "0" / "damaged.npy"
    path.parent.mkdir()
    path.write_bytes(DAMAGES["no literal"])
    result = microtir("evaluate", INT8, "--dataset", tmp_path)
    assert result.status == ExitCode.ENVIRONMENT and str(path) in result.diagnostic
