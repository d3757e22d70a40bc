"""Programs that tests compile are cached in the session's folder, not in the user's home.

All workers of a session share it: a program or an object that one of them has compiled is there for
the others.  Where ccache is installed, it answers for every compiler that the package's commands
start: hundreds of projects bring the same runtime.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.compile_cache import VARIABLE

_PREFIXES = ("", "arm-none-eabi-", "riscv64-unknown-elf-", "avr-", "aarch64-linux-gnu-")
_COMPILERS = [
    "clang",
    "clang++",
    *(f"{prefix}{name}" for prefix in _PREFIXES for name in ("gcc", "g++")),
]


@pytest.fixture(scope="session", autouse=True)
def _caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the host loader and the compilers caches of the session's own."""
    base = tmp_path_factory.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folders = {"XDG_CACHE_HOME": root / "cache", VARIABLE: root / "objects"}
    for folder in folders.values():
        folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**folders, **_ccache(root)}.items():
            patch.setenv(name, str(value))
        yield


def _ccache(root: Path) -> dict[str, str | Path]:
    """Return the variables by which ccache stands before the compilers, none where it is missing.

    An object depends on the text alone: not on the folder it is compiled in, which differs in each
    test, nor on the age of that text, which was written a moment ago.
    """
    program = shutil.which("ccache")
    if program is None:
        return {}
    links = root / "compilers"
    links.mkdir(exist_ok=True)
    for name in _COMPILERS:
        if shutil.which(name) is not None and not (links / name).is_symlink():
            try:
                (links / name).symlink_to(program)
            except FileExistsError:  # another worker was faster
                assert (links / name).is_symlink()
    return {
        "PATH": f"{links}{os.pathsep}{os.environ['PATH']}",
        "CCACHE_PATH": os.environ["PATH"],  # where the compilers are, whatever a test makes of PATH
        "CCACHE_DIR": root / "ccache",
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_DEPEND": "1",  # includes are what the compiler writes down, where it is told to
        "CCACHE_SLOPPINESS": "include_file_mtime,include_file_ctime,system_headers",
        "CCACHE_NOCOMPRESS": "1",
    }
