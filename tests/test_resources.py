"""Finding the files that are not Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from microtir import resources
from microtir.errors import MicrotirError

Finder = Callable[[], Path]
FOLDERS = [resources.templates, resources.runtime_crt, resources.boards]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pretends that the package lies in `generator/microtir` of an empty tree."""
    folder = tmp_path / "generator" / "microtir"
    folder.mkdir(parents=True)
    monkeypatch.setattr(resources, "_PACKAGE", folder)
    return folder


@pytest.mark.parametrize("finder", FOLDERS, ids=lambda f: f.__name__)
def test_this_installation_is_complete(finder: Finder) -> None:
    """Every folder is found in the installation under test, and is not empty."""
    assert any(finder().iterdir())


@pytest.mark.parametrize("name", ["digits_int8.tflite", "digits_test.npz"])
def test_this_installation_has_the_example(name: str) -> None:
    """The bundled example model and its samples are found."""
    assert resources.example(f"digits/{name}").stat().st_size > 0


@pytest.mark.parametrize("finder", FOLDERS, ids=lambda f: f.__name__)
def test_checkout(package: Path, finder: Finder) -> None:
    """In a checkout or an editable install the folders lie in the repository's root."""
    folder = package.parent.parent / finder.__name__
    folder.mkdir()
    assert finder() == folder


@pytest.mark.parametrize("finder", FOLDERS, ids=lambda f: f.__name__)
def test_wheel_comes_first(package: Path, finder: Finder) -> None:
    """Packed data wins over folders that happen to lie two levels above the package."""
    (package.parent.parent / finder.__name__).mkdir()
    packed = package / "_data" / finder.__name__
    packed.mkdir(parents=True)
    assert finder() == packed


def test_missing_file_is_a_diagnostic(package: Path) -> None:
    """What is missing, where it was looked for and how to mend it are in the message."""
    with pytest.raises(MicrotirError) as caught:
        resources.example("digits/nothing.tflite")
    text = str(caught.value)
    assert "'examples/digits/nothing.tflite' is not part of this installation" in text
    assert str(package) in text
    assert "fix:   install microtir again" in text
