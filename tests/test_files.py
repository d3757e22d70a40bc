from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from microtir.errors import OutputError
from microtir.support import scratch
from microtir.support.files import replace_file, replace_folder


def names(folder: Path) -> list[str]:
    """Everything below a folder."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*"))


def full_disk(*_: object) -> None:
    """Return what the system says when there is no room."""
    raise OSError(28, "No space left on device")


def test_a_file_is_replaced(tmp_path: Path) -> None:
    """Folders above a file are made, and one that is there keeps its permissions."""
    target = tmp_path / "a" / "b" / "page.html"
    replace_file(target, b"one")
    target.chmod(0o640)
    replace_file(target, b"two")
    assert target.read_bytes() == b"two"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert names(tmp_path) == ["a", "a/b", "a/b/page.html"]


def test_a_link_goes_on_pointing(tmp_path: Path) -> None:
    """What a link points to is replaced, not the link."""
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    replace_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"
    (tmp_path / "to_folder").symlink_to(tmp_path / "folder")
    replace_folder(tmp_path / "to_folder", {"x": b"1"})
    assert (tmp_path / "to_folder").is_symlink()
    assert (tmp_path / "folder" / "x").read_bytes() == b"1"


def test_a_device_is_written_to() -> None:
    """Nothing takes the place of /dev/null."""
    replace_file(Path(os.devnull), b"gone")
    assert Path(os.devnull).is_char_device()


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file and a folder that cannot be written stay as they were, and nothing lies beside."""
    replace_file(tmp_path / "file", b"old")
    replace_folder(tmp_path / "folder", {"x/y": b"old"})
    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(OutputError, match=r"(?s)file: cannot be written: No space.*fix:"):
        replace_file(tmp_path / "file", b"new")
    with pytest.raises(OutputError, match=r"(?s)folder: cannot be written: No space.*fix:"):
        replace_folder(tmp_path / "folder", {"x/y": b"new"})
    assert names(tmp_path) == ["file", "folder", "folder/x", "folder/x/y"]
    assert (tmp_path / "file").read_bytes() == (tmp_path / "folder/x/y").read_bytes() == b"old"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """A folder is not replaced by a file."""
    with pytest.raises(OutputError, match="is a folder, not a file"):
        replace_file(tmp_path, b"")


_KILLED = """
import os, signal, sys
from pathlib import Path
from microtir.support import files, scratch
{patch}
files.replace_folder(Path(sys.argv[1]), {{"x": b"new"}})
"""
_AT_RENAME = """
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
real, calls = Path.rename, []
def rename(self, target):
    done = real(self, target)
    calls.append(self.name)
    if len(calls) == {number}:
        os.kill(os.getpid(), signal.{signal})
    return done
Path.rename = rename
scratch.exchange = lambda one, other: False
"""
_AFTER_EXCHANGE = """
real = scratch.exchange
def exchange(one, other):
    done = real(one, other)
    os.kill(os.getpid(), signal.SIGKILL)
    return done
scratch.exchange = exchange
"""


def _killed(target: Path, patch: str) -> int:
    """Replace a folder in a process of its own that a signal hits in the middle; its status."""
    code = _KILLED.format(patch=patch)
    done = subprocess.run([sys.executable, "-c", code, target], capture_output=True, check=False)
    return done.returncode


@pytest.mark.parametrize("number", [1, 2, 3])
def test_what_a_killed_process_left_is_put_right(tmp_path: Path, number: int) -> None:
    """Between the two renames of a system without exchange the previous output was lost."""
    target = tmp_path / "out"
    replace_folder(target, {"x": b"old"})
    patch = _AT_RENAME.format(number=number, signal="SIGKILL")
    assert _killed(target, patch) == -signal.SIGKILL
    assert len(names(tmp_path)) > 2  # its folder is left
    with scratch.scratch_beside(target):
        assert (target / "x").read_bytes() == (b"new" if number == 3 else b"old")
    assert names(tmp_path) == ["out", "out/x"]


def test_an_exchange_cannot_be_cut(tmp_path: Path) -> None:
    """Where the system exchanges two folders at once, the output is whole at every moment."""
    target = tmp_path / "out"
    replace_folder(target, {"x": b"old"})
    assert _killed(target, _AFTER_EXCHANGE) == -signal.SIGKILL
    assert (target / "x").read_bytes() == b"new"
    replace_folder(target, {"x": b"newer"})
    assert names(tmp_path) == ["out", "out/x"]
    assert (target / "x").read_bytes() == b"newer"


def test_an_interrupt_waits_for_the_second_rename(tmp_path: Path) -> None:
    """Ctrl-C between the two renames ends the program when the new output stands."""
    target = tmp_path / "out"
    replace_folder(target, {"x": b"old"})
    assert _killed(target, _AT_RENAME.format(number=2, signal="SIGINT")) != 0
    assert names(tmp_path) == ["out", "out/x"]
    assert (target / "x").read_bytes() == b"new"


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    """What another process works in, what has another name and what is new stays."""
    (tmp_path / ".out.fresh.microtir").mkdir()
    (tmp_path / ".out.mine").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".out.link.microtir").symlink_to(tmp_path / "elsewhere")
    with scratch.scratch_beside(tmp_path / "out") as busy:
        replace_folder(tmp_path / "out", {"x": b"1"})
        assert busy.is_dir()
    assert names(tmp_path) == [
        ".out.fresh.microtir", ".out.link.microtir", ".out.mine", "elsewhere", "out", "out/x",
    ]  # fmt: skip


def test_the_longest_name_has_a_folder_beside(tmp_path: Path) -> None:
    """A name of as many bytes as a file system takes leaves no room for another in front of it."""
    replace_file(tmp_path / ("x" * 255), b"1")
    replace_folder(tmp_path / ("\u00e4" * 127), {"x": b"1"})
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("write", [lambda p: replace_file(p, b""), lambda p: replace_folder(p, {})])
def test_a_name_that_no_system_has(tmp_path: Path, write: Callable[[Path], None]) -> None:
    """A zero in a name, and a name that is too long, end in a diagnostic."""
    for name in ("a\0b", "x" * 300):
        with pytest.raises(OutputError, match="cannot be written"):
            write(tmp_path / name)
