"""Finds the files that are not Python: templates, C runtime, boards, the example model.

They lie in the repository's root, where people look for them, and are packed into a wheel under
`microtir/_data`.  Everything else asks this module, so that a wheel, an editable install and a
plain checkout behave alike.
"""

from __future__ import annotations

from pathlib import Path

from microtir.errors import MicrotirError

_PACKAGE = Path(__file__).resolve().parent


def templates() -> Path:
    """Folder of the Jinja templates; MicrotirError if the installation lacks it."""
    return _find("templates")


def runtime_crt() -> Path:
    """Folder of the C runtime (`include/`, `src/`); MicrotirError if the installation lacks it."""
    return _find("runtime_crt")


def boards() -> Path:
    """Folder with one folder per board; MicrotirError if the installation lacks it."""
    return _find("boards")


def example(name: str) -> Path:
    """A file of the bundled examples, e.g. `example("digits/digits_int8.tflite")`.

    Raises:
        MicrotirError: if the installation has no such file.
    """
    return _find(f"examples/{name}")


def _find(name: str) -> Path:
    """Look beside the package's code first: a wheel never picks up a checkout's files."""
    for root in (_PACKAGE / "_data", _PACKAGE.parent.parent):
        path = root / name
        if path.exists():
            return path
    raise MicrotirError(
        f"'{name}' is not part of this installation of microtir",
        where=str(_PACKAGE),
        legal="the package data under microtir/_data, or the repository's root",
        fix="install microtir again from a wheel or from the repository's root",
    )
