"""Set-up of a checkout, on machines that are put together from stand-ins."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("as", "bash", "cat", "cp", "cut", "dirname", "env", "grep", "id", "ld", "mkdir",
         "mktemp", "rm", "sha256sum", "touch", "true")  # fmt: skip

WITHOUT_HEADERS = """#!/bin/bash
[ -e "$0.mended" ] || exec {gcc} -nostdinc -isystem {own} "$@"
exec {gcc} "$@"
"""
# An interpreter that says where it is installed, and that its virtual environments are its own.
PYTHON = """#!/bin/bash
case "$*" in
  *base_prefix*) echo {home} 3 11 2 ;;
  *"-m venv"*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
  *install*) echo "$@" ;;
esac
"""
APT = """#!/bin/bash
case "$*" in
  *--assume-no*) echo "Need to get 51 MB of archives."; exit 1 ;;
  *"install -y"*) echo unpacked; touch {mended} ;;
esac
"""


class Machine:
    """A checkout, and a PATH with few programs."""

    def __init__(self, folder: Path) -> None:
        self.root, self.bin = folder / "checkout", folder / "bin"
        self.bin.mkdir()
        (self.root / "scripts").mkdir(parents=True)
        (self.root / "pyproject.toml").write_text("[project]\n")
        shutil.copy(ROOT / "scripts" / "setup.sh", self.root / "scripts")
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool) or tool)
        # ccache would look for the compiler on this PATH.
        gcc = shutil.which("gcc", path=os.environ.get("CCACHE_PATH")) or "gcc"
        own = subprocess.run(
            [gcc, "-print-file-name=include"], capture_output=True, text=True, check=True
        ).stdout.strip()
        self.add("gcc", WITHOUT_HEADERS.format(gcc=gcc, own=own))
        self.add("python3", PYTHON.format(home="own"))
        self.add("sudo", '#!/bin/bash\nshift\nexec "$@"\n')

    def add(self, name: str, text: str) -> Path:
        """Add a program."""
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def setup(self, mode: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Set the checkout up."""
        return subprocess.run(
            ["bash", str(self.root / "scripts" / "setup.sh"), mode],
            env={"PATH": str(self.bin), **variables}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine whose gcc has no headers of a C library, and without apt."""
    return Machine(tmp_path)


def test_headers_of_the_c_library_are_missing(machine: Machine) -> None:
    """A gcc without stdint.h passed for a compiler, and `make demo` ended in a traceback."""
    done = machine.setup("run")
    assert done.returncode == 3
    assert "missing: gcc libc6-dev" in done.stderr
    assert "sudo apt-get install --no-install-recommends gcc libc6-dev" in done.stderr
    assert not (machine.root / ".venv").exists()


def test_what_is_missing_is_installed(machine: Machine) -> None:
    """How much is loaded is said before; afterwards the compiler is tried again."""
    machine.add("apt-get", APT.format(mended=machine.bin / "gcc.mended"))
    done = machine.setup("run")
    assert done.returncode == 0, done.stderr
    loads, unpacks = done.stdout.index("Need to get 51 MB"), done.stdout.index("unpacked")
    packages, installs = done.stdout.index("about 22 MB to load"), done.stdout.index("-m pip")
    assert loads < unpacks < packages < installs
    again = machine.setup("run")
    assert (again.returncode, again.stdout) == (0, "")


def test_what_was_installed_in_vain_is_said(machine: Machine) -> None:
    """Packages that do not help, where another gcc comes first on the PATH, are no endless loop."""
    machine.add("apt-get", APT.format(mended=machine.bin / "elsewhere"))
    done = machine.setup("run")
    assert (done.returncode, "installed, and still of no use" in done.stderr) == (3, True)


def test_an_environment_of_another_interpreter_is_made_anew(machine: Machine) -> None:
    """PYTHON was ignored where a .venv was there: the tests ran with what had made it."""
    other = str(machine.add("other-python", PYTHON.format(home="other")))
    for python, made in (("", True), ("python3", False), (other, True), ("", False)):
        done = machine.setup("unit", **({"PYTHON": python} if python else {}))
        assert done.returncode == 0, done.stderr
        assert ("installing microtir" in done.stdout) is made, python
    home = machine.root / ".venv" / "bin" / "python"
    assert "other 3 11 2" in subprocess.run([home, "base_prefix"], capture_output=True, text=True,
                                            check=True).stdout  # fmt: skip


def test_an_interpreter_that_does_not_start(machine: Machine) -> None:
    """An interpreter that was asked for is not replaced by another one in silence."""
    done = machine.setup("unit", PYTHON="python9")
    assert (done.returncode, "PYTHON=python9 is no Python" in done.stderr) == (3, True)
    assert "usage:" in machine.setup("all").stderr


def test_the_browser_of_the_product_is_missing(machine: Machine) -> None:
    """The page of the studio is not left unchecked in silence."""
    done = machine.setup("product")
    assert done.returncode == 3
    assert " chromium chromium-driver " in done.stderr
    for name in ("google-chrome", "chromedriver"):
        machine.add(name, "#!/bin/bash\n")
    assert "chromium" not in machine.setup("product").stderr
