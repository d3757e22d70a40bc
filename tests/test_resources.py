"""Finding the files that are not Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from microtir.errors import MicrotirError
from microtir.support import resources

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
    assert "fix:      install microtir again" in text


@pytest.mark.parametrize(
    ("url", "has_data", "expected"),
    [
        (None, False, "pip install '{root}[test]'"),
        (None, True, "pip install 'microtir[test]'"),
        ("file:///some/clone", True, "pip install '/some/clone[test]'"),
        (
            "https://example.org/microtir.zip",
            True,
            "pip install 'microtir[test] @ https://example.org/microtir.zip'",
        ),
    ],
)
def test_an_extra_comes_from_where_the_package_came(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    url: str | None,
    has_data: bool,
    expected: str,
) -> None:
    """In a checkout, which is on no index, the command that was told installed somebody else's."""
    package = tmp_path / "generator" / "microtir"
    (package / "_data").mkdir(parents=True) if has_data else package.mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(resources, "_PACKAGE", package)
    monkeypatch.setattr(resources, "_installed_from", lambda: url)
    assert resources.install_extra("test") == expected.format(root=tmp_path)
    monkeypatch.chdir(tmp_path)
    if not has_data:
        assert resources.install_extra("test") == "pip install '.[test]'"
