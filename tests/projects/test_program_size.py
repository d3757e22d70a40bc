"""What a built program takes, read from files that compilers and others wrote."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from microtir.projects.program_size import program_size

_SECTIONS = (
    # name, kind, flags, size
    ("", 0, 0, 0),
    (".text", 1, 6, 1000),
    (".data", 1, 3, 24),
    (".bss", 8, 3, 300),
    (".stack", 8, 3, 4096),
    (".comment", 1, 0, 77),  # not in the memory of a program
    (".shstrtab", 3, 0, 0),
)


def elf(wide: bool, order: str) -> bytes:
    """An ELF file of section headers only."""
    names = b"\0".join(name.encode() for name, *_ in _SECTIONS) + b"\0"
    start = 64 if wide else 52
    table = start + len(names)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 2 if order == ">" else 1]) + bytes(10)
    form = f"{order}HHIQQQIHHHHHH" if wide else f"{order}HHIIIIIHHHHHH"
    extent = 64 if wide else 40
    head = struct.pack(form, 2, 40, 1, 0, 0, table, 0, start, 0, 0, extent, len(_SECTIONS), 6)
    rows, at = b"", 0
    for name, kind, flags, size in _SECTIONS:
        offset = start if name == ".shstrtab" else 0
        row = (at, kind, flags, 0, offset, size, 0, 0, 0, 0)
        rows += struct.pack(f"{order}IIQQQQIIQQ" if wide else f"{order}10I", *row)
        at += len(name) + 1
    return ident + head + names + rows


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("order", ["<", ">"])
def test_sections_of_a_program(tmp_path: Path, wide: bool, order: str) -> None:
    """Data is in both memories, the stack in RAM, and comments are in neither."""
    path = tmp_path / "firmware.elf"
    path.write_bytes(elf(wide, order))
    size = program_size(path)
    assert size is not None and (size.flash, size.ram, size.stack) == (1024, 4420, 4096)
    assert str(size) == ("1,024 bytes of flash, 4,420 bytes of RAM, 4,096 of them for the stack")


def test_an_archive_is_the_sum_of_its_files(tmp_path: Path) -> None:
    """The library of a CMake project has no program: its objects count, other files do not."""
    path = tmp_path / "lib.a"
    text = b"!<arch>\n"
    for member in (b"index", elf(False, "<"), elf(False, "<")):
        text += b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (b"x/", 0, 0, 0, 0o644, len(member))
        text += member + b"\n" * (len(member) % 2)
    path.write_bytes(text)
    size = program_size(path)
    assert size is not None and size.flash == 2048


@pytest.mark.parametrize("length", [0, 4, 30, 60, 200])
def test_other_files_have_no_size(tmp_path: Path, length: int) -> None:
    """A file that is cut short, or of another format, gives none instead of a traceback."""
    path = tmp_path / "firmware.hex"
    path.write_bytes(elf(False, "<")[:length])
    assert program_size(path) is None
    path.write_bytes(b":10000000" + bytes(length))
    assert program_size(path) is None
