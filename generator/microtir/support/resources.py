"""Finds the files that are not Python: templates, C runtime, boards, the example model.

They lie in the repository's root, where people look for them, and are packed into a wheel under
`microtir/_data`.  Everything else asks this module, so that a wheel, an editable install and a
plain checkout behave alike.
"""

from __future__ import annotations

import json
import shlex
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from microtir.errors import MicrotirError

_NAME = "microtir"
_PACKAGE = Path(__file__).resolve().parent.parent


def templates() -> Path:
    """Return the folder of templates; MicrotirError if the installation lacks it."""
    return _find("templates")


def runtime_crt() -> Path:
    """Return the C runtime's folder (`include/`, `src/`); MicrotirError if it is missing."""
    return _find("runtime_crt")


def boards() -> Path:
    """Return the folder of boards, each in one of its own; MicrotirError if it is missing."""
    return _find("boards")


def example(name: str) -> Path:
    """Return a file of the bundled examples, e.g. `example("digits/digits_int8.tflite")`.

    Raises:
        MicrotirError: if the installation has no such file.
    """
    return _find(f"examples/{name}")


def install_extra(extra: str) -> str:
    """Return the command that installs what an optional feature needs.

    It names where this package came from: a checkout or an archive may be on no index, and what is
    on one under the same name is then another version.
    """
    root = _PACKAGE.parent.parent
    place = _NAME
    if not (_PACKAGE / "_data").exists() and (root / "pyproject.toml").is_file():
        place = "." if Path.cwd() == root else str(root)
    elif (url := _installed_from()) is not None:
        parts = urlsplit(url)
        is_file = parts.scheme == "file"
        place = url2pathname(parts.path) if is_file else url
        if not is_file or Path(place).is_file():  # a wheel, not a folder
            place = f"{_NAME}[{extra}] @ {url}"
            return f"pip install {shlex.quote(place)}"
    return f"pip install {shlex.quote(f'{place}[{extra}]')}"


def _installed_from() -> str | None:
    """Return what pip was told to install, if it was no name on an index."""
    try:
        text = Distribution.from_name(_NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    return None if text is None else str(json.loads(text)["url"])


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
