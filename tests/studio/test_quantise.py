"""Float models become integers on the page: what it costs, files of it, and hostile samples."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from microtir.graph.ir import Array
from microtir.studio import app as studio_app
from microtir.studio.guard import TOKEN_HEADER
from tests.support.command import FLOAT, TEST_SET, Command
from tests.support.studio_server import Page, served

_SCALE = np.float32(0.00392157)


def _npz(**arrays: Array) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _samples() -> bytes:
    """Return thirty samples of the example, with their classes."""
    with np.load(TEST_SET) as arrays:
        inputs, labels = arrays["inputs"][:30], arrays["labels"][:30]
    return _npz(image=(inputs.astype(np.float32) + 128) * _SCALE, labels=labels)


def _drop_samples(page: Page, content: bytes, name: str = "samples.npz") -> dict[str, Any]:
    headers = {TOKEN_HEADER: page.access.token, "x-model-name": name}
    (event,) = page.send("POST", "/api/samples", content, headers).events
    return event


def _float_model(page: Page) -> int:
    dropped, _ = page.drop("digits_float.tflite", FLOAT.read_bytes())
    return int(dropped["number"])


def _models(page: Page) -> list[dict[str, Any]]:
    found = json.loads(page.get("/api/start").body)["models"]
    assert isinstance(found, list)
    return found


@pytest.mark.tools
def test_integers_are_a_model_as_any_other(
    page: Page, microtir: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is listed with its origin, has a cost and a plan, and the file is that of the verb."""
    model, samples = _float_model(page), _drop_samples(page, _samples())
    assert samples["label"] == "samples.npz"
    dropped, done = page.ask("quantise", model=model, samples=samples["number"], width="16x8")
    assert done == {"event": "quantised"}
    assert dropped["label"] == "digits_float_16x8.tflite" and dropped["origin"] == model
    assert {"number": dropped["number"], "label": dropped["label"], "origin": model} in _models(
        page
    )
    (facts,) = page.ask("inspect", model=dropped["number"])
    assert "input image: int16 1x8x8x1" in facts["facts"]
    assert "accuracy in floats" in facts["cost"] and 'class="marked"' in facts["cost"]
    plan = {"model": dropped["number"], "target": "cortex-m4", "optimize": "balanced"}
    shown, _ = page.ask("plan", plan=plan)
    assert shown["command"].startswith(
        "microtir compile digits_float.tflite --quantise samples.npz --16x8 --target cortex-m4"
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples.npz").write_bytes(_samples())
    made = tmp_path / "made.tflite"
    assert microtir("quantise", FLOAT, "--data", "samples.npz", "--16x8", "-o", made).status == 0
    files = {}
    for kind in ("tflite", "onnx"):
        (file,) = page.ask("download", plan=plan, kind=kind)
        files[file["name"]] = base64.b64decode(file["content"])
    assert files["digits_float_16x8.tflite"] == made.read_bytes()
    assert files["digits_float_16x8.onnx"].startswith(b"\x08")


def test_what_was_not_made_here_has_no_cost(page: Page) -> None:
    """Neither has its file a download: the person has it."""
    (facts,) = page.ask("inspect", model=0)
    assert facts["cost"] is None
    plan = {"model": 0, "target": "cortex-m4", "optimize": "balanced"}
    (error,) = page.ask("download", plan=plan, kind="tflite")
    assert error["what"] == "the studio did not quantise it"


class _Bad:
    """What a pickle would make, if one were loaded."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return pytest.fail, ("an object of a file was made",)


def _bomb() -> bytes:
    """Return an archive whose array says to be larger than any memory."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (1 << 34, 8, 8, 1)}
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("image.npy", header.getvalue() + bytes(1 << 22))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "samples.npz"),
        (b"PK\x03\x04" + bytes(40), "samples.npz"),
        (_npz(image=np.array([_Bad()], object)), "object"),
        (_bomb(), "more than 2147483648 bytes"),
        (_npz(other=np.zeros((5, 8, 8, 1), np.float32), one=np.zeros(5)), "no array for the input"),
        (_npz(image=np.full((5, 8, 8, 1), np.nan, np.float32)), "not finite"),
        (_npz(image=np.zeros((5, 8, 8, 1), np.uint8)), "the samples have the type uint8"),
        (_npz(image=np.zeros((5, 9, 8, 1), np.float32)), "the shape (5, 9, 8, 1)"),
    ],
)
def test_samples_are_hostile(page: Page, content: bytes, words: str) -> None:
    """What is wrong is a sentence in the words of the command line, and no model is kept."""
    model, samples = _float_model(page), _drop_samples(page, content)
    before = _models(page)
    (error,) = page.ask("quantise", model=model, samples=samples["number"], width="int8")
    assert error["event"] == "error" and words in f"{error['what']} {error['where']}"
    assert "internal error" not in error["what"] and "/" not in error["where"]
    assert _models(page) == before


def test_what_cannot_be_asked(page: Page) -> None:
    """Samples and models that are not there, another width, a model of integers."""
    samples = _drop_samples(page, _samples())["number"]
    model = _float_model(page)
    for number, data, width, words in (
        (model, 999, "int8", "no longer has"),
        (999, samples, "int8", "no longer has"),
        (model, samples, "int3", "int3"),
        (0, samples, "int8", "samples have the type float32"),
    ):
        (error,) = page.ask("quantise", model=number, samples=data, width=width)
        assert error["event"] == "error" and words in f"{error['what']} {error['legal']}", error


def test_the_newest_samples_are_kept(page: Page) -> None:
    """Two files of them; a name is a label as that of a model is."""
    first = _drop_samples(page, _samples(), "..%2F%2Fold.npz")
    assert first["label"] == "old.npz"
    newest = json.loads(page.get("/api/start").body)["samples"]
    assert newest == {key: first[key] for key in ("number", "label")}
    for _ in range(2):
        _drop_samples(page, b"x")
    model = _float_model(page)
    (error,) = page.ask("quantise", model=model, samples=first["number"], width="int8")
    assert error["what"] == "the studio no longer has these samples"


def test_samples_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is larger than a model may be is not taken."""
    monkeypatch.setattr(studio_app, "MOST_BYTES", 1000)
    with served() as page:
        event = _drop_samples(page, bytes(1001))
    assert event["what"] == "a file of samples has more than 1,000 bytes"
