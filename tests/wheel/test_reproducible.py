"""Wheel and sources are the same bytes, whoever builds them, where, when and by which Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.support.other_python import other_python

ROOT = Path(__file__).resolve().parents[2]
BUILT_OF = (
    ".gitignore", "CHANGELOG.md", "LICENSE", "README.md", "boards", "examples/digits", "generator",
    "pyproject.toml", "runtime_crt", "sbom.spdx.json", "templates",
)  # fmt: skip
DAY = 86_400  # seconds


def _copied(folder: Path) -> Path:
    """Return a copy of the sources in another folder, with other dates and permissions."""
    for name in BUILT_OF:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, target)
    for number, path in enumerate(sorted(folder.rglob("*"))):
        if path.is_file():
            path.chmod(0o600)
            os.utime(path, (DAY * number, DAY * number))
    return folder


def _built(python: str, root: Path, folder: Path) -> dict[str, bytes]:
    """Build the sources and the wheel with the hatchling of this environment."""
    command = [python, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(folder)]
    environment = {**os.environ, "PYTHONPATH": sysconfig.get_path("purelib")}
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Build in the checkout."""
    return _built(sys.executable, ROOT, tmp_path_factory.mktemp("built"))


def test_other_dates_permissions_and_folders_change_no_byte(
    built: dict[str, bytes], tmp_path: Path
) -> None:
    """A copy of the sources gives the same archives."""
    again = _built(sys.executable, _copied(tmp_path / "copy"), tmp_path / "again")
    assert list(again) == list(built) and len(built) == 2
    assert again == built


def test_another_python_builds_the_same_bytes(built: dict[str, bytes], tmp_path: Path) -> None:
    """What is compressed, ordered or written does not depend on the interpreter."""
    python = other_python()
    if python is None:
        pytest.skip("this machine has one version of Python")
    assert _built(python, ROOT, tmp_path / "other") == built


def test_the_wheel_has_its_bill_of_materials(built: dict[str, bytes], tmp_path: Path) -> None:
    """It is where PEP 770 puts it; and the sources hold it, too."""
    for name, data in built.items():
        (tmp_path / name).write_bytes(data)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (bill,) = (name for name in archive.namelist() if ".dist-info/sboms/" in name)
        assert archive.read(bill) == (ROOT / "sbom.spdx.json").read_bytes()
    (sources,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sources) as tar:
        assert any(name.endswith("/sbom.spdx.json") for name in tar.getnames())
