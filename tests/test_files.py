from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from microtir.errors import OutputError
from microtir.files import replace_file, replace_folder


def names(folder: Path) -> list[str]:
    """Everything below a folder."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*"))


def full_disk(*_: object) -> None:
    """What the system says when there is no room."""
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
