"""Reads from a built program what it takes of flash and RAM: an ELF file, or an archive of them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ELF, _ARCHIVE = b"\x7fELF", b"!<arch>\n"
_MEMBER = struct.Struct("16s12s6s6s8s10s2s")  # header of a file in an archive
_NOBITS = 8  # a section without bytes in the file
_WRITE, _ALLOC = 1, 2
_STACK = ".stack"

_Section = tuple[str, int, int, int, int, int]  # name, kind, flags, address, offset, size


@dataclass(frozen=True, slots=True)
class ProgramSize:
    """The bytes of a program in flash and in RAM; `stack` is the part of RAM set aside for it."""

    flash: int
    ram: int
    stack: int

    def __str__(self) -> str:
        stack = f", {self.stack:,} of them for the stack" if self.stack else ""
        return f"{self.flash:,} bytes of flash, {self.ram:,} bytes of RAM{stack}"


def program_size(path: Path) -> ProgramSize | None:
    """Return what a program takes; None for a file that is neither ELF nor an archive of ELF.

    Variables with a value are in both memories: start-up code copies them.
    """
    flash = ram = stack = 0
    try:
        for name, kind, flags, *_, size in _sections(path.read_bytes()):
            if flags & _ALLOC:
                flash += size if kind != _NOBITS else 0
                ram += size if flags & _WRITE else 0
                stack += size if name == _STACK else 0
    except (struct.error, IndexError):
        return None
    return ProgramSize(flash, ram, stack) if flash else None


def constants_of(path: Path) -> tuple[tuple[int, bytes], ...]:
    """Return what an ELF program has in memory that it does not write, each with its address."""
    data = path.read_bytes()
    return tuple(
        (address, data[offset : offset + size])
        for _, kind, flags, address, offset, size in _sections_of_elf(data)
        if flags & (_ALLOC | _WRITE) == _ALLOC and kind != _NOBITS
    )


def _sections(data: bytes) -> Iterator[_Section]:
    """Yield the sections of a program, or of all in an archive."""
    if data.startswith(_ELF):
        yield from _sections_of_elf(data)
    elif data.startswith(_ARCHIVE):
        at = len(_ARCHIVE)
        while at + _MEMBER.size <= len(data):
            digits = _MEMBER.unpack_from(data, at)[5].strip()
            size = int(digits) if digits.isdigit() else len(data)
            at += _MEMBER.size
            member = data[at : at + size]
            if member.startswith(_ELF):
                yield from _sections_of_elf(member)
            at += size + size % 2


def _sections_of_elf(data: bytes) -> Iterator[_Section]:
    is_wide, order = data[4] == 2, ">" if data[5] == 2 else "<"
    # Offset of the section headers; their size, their number, and which one has the names.
    (table,) = struct.unpack_from(f"{order}{'Q' if is_wide else 'I'}", data, 40 if is_wide else 32)
    extent, count, names = struct.unpack_from(f"{order}3H", data, 58 if is_wide else 46)
    # Name, kind, flags, address, offset, size.
    header = struct.Struct(f"{order}IIQQQQ" if is_wide else f"{order}6I")
    rows = [header.unpack_from(data, table + number * extent) for number in range(count)]
    texts = rows[names][4]
    for name, kind, flags, address, offset, size in rows:
        end = data.find(b"\0", texts + name)
        text = data[texts + name : end].decode("ascii", "replace")
        yield text, kind, flags, address, offset, size
