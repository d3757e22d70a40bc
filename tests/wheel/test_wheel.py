"""The built wheel works by itself: no checkout, no editable install, no path set.

A file that is missing from the wheel, or an import that only a checkout satisfies, shows here
and nowhere else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Installation:
    """An environment that holds the wheel; `folder` is an empty folder to work in."""

    bin: Path
    folder: Path

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, as a user's shell would."""
        program, *arguments = map(str, command)
        return _run([str(self.bin / program), *arguments], self.folder)

    def example(self, name: str) -> str:
        """Path of an example file in the installed package."""
        code = f"from microtir.support import resources; print(resources.example({name!r}))"
        return self.run("python", "-c", code).stdout.strip()


def _run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    result = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """Builds the wheel and installs it into a new environment.

    The dependencies are those of the running environment, lent by a path file, so that no network
    is needed; the path file does not lend an editable install of microtir, because path files
    inside a lent folder are not read.
    """
    base = tmp_path_factory.mktemp("wheel")
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(base)], ROOT)
    (wheel,) = base.glob("microtir-*.whl")
    environment = base / "env"
    venv.create(environment, with_pip=False)
    python = str(environment / "bin" / "python")
    site = _run([python, "-c", "import sysconfig as s; print(s.get_path('purelib'))"], base).stdout
    (Path(site.strip()) / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    _run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], base)
    folder = base / "elsewhere"
    folder.mkdir()
    return Installation(environment / "bin", folder)


def test_package_comes_from_the_wheel(installation: Installation) -> None:
    """The imported package lies in the new environment, with its version and its type marker."""
    code = "import microtir; print(microtir.__version__, microtir.__file__)"
    version, file = installation.run("python", "-c", code).stdout.split()
    package = Path(file).parent
    assert package.is_relative_to(installation.bin.parent)
    assert version.count(".") == 2
    assert (package / "py.typed").exists()


def test_data_comes_from_the_wheel(installation: Installation) -> None:
    """Templates, runtime and boards are packed, every file that the checkout has."""
    code = (
        "from microtir.support import resources as r; "
        "print(r.templates(), r.runtime_crt(), r.boards())"
    )
    for packed in map(Path, installation.run("python", "-c", code).stdout.split()):
        assert packed.is_relative_to(installation.bin.parent)
        source = ROOT / packed.name
        assert _files(source) == _files(packed)


def _files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_every_module_imports(installation: Installation) -> None:
    """No module needs a file or a package that only a checkout has."""
    code = (
        "import importlib, pkgutil, microtir\n"
        "names = [m.name for m in pkgutil.walk_packages(microtir.__path__, 'microtir.')]\n"
        "for name in names:\n"
        "    if not name.endswith('__main__'):\n"
        "        importlib.import_module(name)\n"
        "print(len(names))\n"
    )
    assert int(installation.run("python", "-c", code).stdout) > 10


def test_help(installation: Installation) -> None:
    """The console script is there and lists its verbs."""
    text = installation.run("microtir", "--help").stdout
    assert "compile" in text
    assert "verify" in text


def test_compile_example(installation: Installation) -> None:
    """The bundled model compiles into a C file and a header."""
    model = installation.example("digits/digits_int8.tflite")
    installation.run("microtir", "compile", model, "-o", "out")
    files = {path.suffix for path in (installation.folder / "out").iterdir()}
    assert {".c", ".h"} <= files


def test_verify_example(installation: Installation) -> None:
    """The compiled C of the bundled model computes its golden outputs."""
    model = installation.example("digits/digits_int8.tflite")
    samples = installation.example("digits/digits_test.npz")
    installation.run("microtir", "verify", model, "--golden", samples)
