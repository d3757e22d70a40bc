"""Models that are dropped: names are labels, sizes are limited, what is no model is not kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from microtir.errors import UsageError
from microtir.studio import app as studio_app
from microtir.studio.models import ModelStore
from tests.support.command import INT8
from tests.support.studio_server import EXAMPLE, Page, served


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("kws.tflite", "kws.tflite"),
        ("../../etc/passwd", "passwd"),
        ("C:\\models\\my model (2).onnx", "my model (2).onnx"),
        ("..", "model"),
        ("", "model"),
        ("\0<b>.tflite", "b_.tflite"),
        ("x" * 500 + ".tflite", "x" * 53 + ".tflite"),
        (".hidden", "hidden"),
        ("ü.tflite", "ü.tflite"),
        ("\U00020000" * 500 + ".onnx", "\U00020000" * 55 + ".onnx"),
        ("-o out.tflite", "o out.tflite"),
    ],
)
def test_a_name_is_a_label(tmp_path: Path, name: str, label: str) -> None:
    """It is what the person calls the file, without what is unsafe, in a folder of its own."""
    store = ModelStore(tmp_path, [EXAMPLE])
    file = store.file(store.add(name, b"x"))
    assert file.label == label
    assert file.path == tmp_path / "1" / label and file.path.read_bytes() == b"x"


def test_the_newest_files_are_kept(tmp_path: Path) -> None:
    """Eight of them and what the server began with; one that is gone says so."""
    store = ModelStore(tmp_path, [EXAMPLE])
    for number in range(10):
        store.add(f"{number}.tflite", b"x")
    assert [one["number"] for one in store.listed()] == [0, *range(3, 11)]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(map(str, range(3, 11)))
    with pytest.raises(UsageError, match="no longer has"):
        store.file(1)


def test_a_dropped_model_is_opened(page: Page) -> None:
    """It has a number and facts, and a plan of it is of the same model as the example's."""
    dropped, model = page.drop("my%20net.tflite", INT8.read_bytes())
    assert dropped["label"] == "my net.tflite"
    assert "input image: int8 1x8x8x1" in model["facts"]
    plan, _ = page.ask("plan", plan={"model": dropped["number"], "board": "uno", "optimize": "ram"})
    assert plan["command"] == ("microtir compile 'my net.tflite' --board uno --optimize ram -o out")


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("net.h5", b"\x89HDF\r\n\x1a\n", "the HDF5 file is damaged"),
        ("net.tflite", INT8.read_bytes()[:5000], "are outside the file"),
        ("net.tflite", b"", "the file is empty"),
        ("net.onnx", b"\x08\x07\x12\x00garbage", "this is not an ONNX model"),
        ("net.onnx", b"", "the file is empty"),
    ],
)
def test_what_is_no_model_is_refused_in_known_words(
    page: Page, name: str, content: bytes, what: str
) -> None:
    """The error names the file as it was dropped, says what to do, and nothing is kept."""
    before = page.get("/api/start").body
    (error,) = page.drop(name, content)
    assert error["event"] == "error" and what in error["what"]
    assert error["where"].startswith(name)
    assert page.get("/api/start").body == before


def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not read to its end."""
    monkeypatch.setattr(studio_app, "MOST_BYTES", 1000)
    with served() as page:
        (error,) = page.drop("net.tflite", b"x" * 1001)
        assert error["what"] == "a model file has more than 1,000 bytes"
