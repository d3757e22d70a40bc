"""The names that `import microtir` offers."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import microtir


@pytest.mark.parametrize("name", microtir.__all__)
def test_every_name_loads(name: str) -> None:
    """Every name of `__all__` is there when it is asked for."""
    assert getattr(microtir, name) is not None
    assert name in dir(microtir)


def test_type_checkers_see_the_same_names() -> None:
    """What a type checker is told and what is loaded lazily are the same names."""
    tree = ast.parse(Path(microtir.__file__).read_text("utf-8"))
    block = next(n for n in tree.body if isinstance(n, ast.If))
    told = {alias.name for n in block.body if isinstance(n, ast.ImportFrom) for alias in n.names}
    assert told | {"__version__"} == set(microtir.__all__)


def test_unknown_name() -> None:
    """A name that is not public is an AttributeError, as in any module."""
    with pytest.raises(AttributeError, match="module 'microtir' has no attribute 'biuld'"):
        getattr(microtir, "biuld")  # noqa: B009 - written as an attribute, mypy would refuse it


def test_import_is_light() -> None:
    """Importing the package loads neither numpy nor a compiler stage."""
    code = "import microtir, sys; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    folder = Path(microtir.__file__).parents[1]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    loaded = set(result.stdout.split())
    assert "microtir" in loaded
    assert not loaded & {"numpy", "microtir.driver", "microtir.frontend"}
