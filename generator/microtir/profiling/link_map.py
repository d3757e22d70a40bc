"""Reads from the linker's map what takes how much of flash and RAM."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

# Output sections of all linker scripts of the board templates and of avr-gcc; variables with a
# value are in both memories: start-up code copies them.
_FLASH = (".text", ".rodata", ".ARM.exidx", ".ARM.extab", ".data", ".tdata")
_RAM = (".data", ".tdata", ".bss", ".tbss", ".noinit")

_START = "Linker script and memory map"
_OUTPUT = re.compile(r"^(\.[A-Za-z]\S*)", re.MULTILINE)
_INPUT = re.compile(r"^ (?!\*)(\S+)\s+0x[0-9a-f]+\s+0x([0-9a-f]+) (\S.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Piece:
    """A section of an object file, where it was placed: `output` is the program's section."""

    output: str
    size: int  # bytes
    object: str
    section: str = ""

    @property
    def is_flash(self) -> bool:
        return self.output in _FLASH

    @property
    def is_model(self) -> bool:
        return "model" in PurePosixPath(self.object).parts

    @property
    def is_weights(self) -> bool:
        """Return whether it is of the weights' file or of the file of parameters."""
        return self.is_model and self.object.endswith(("_weights.o", "_parameters.o"))

    @property
    def is_library(self) -> bool:
        """Return whether it comes from a library of the compiler, as libc.a(memcpy.o) does."""
        return not self.object.startswith("build/")


def parse_map(text: str) -> tuple[Piece, ...]:
    """Parse the pieces of a program in a map of GNU ld, without what was discarded."""
    placed = text[text.find(_START) :]
    # A name that is too long for its column has its numbers in the next line.
    joined = re.sub(r"^( \S+)\n +(?=0x)", r"\1 ", placed, flags=re.MULTILINE)
    pieces = []
    parts = _OUTPUT.split(joined)
    for output, body in zip(parts[1::2], parts[2::2], strict=True):
        if output in (*_FLASH, *_RAM):
            listed = (
                Piece(output, int(size, 16), name, section)
                for section, size, name in _INPUT.findall(body)
            )
            pieces += [piece for piece in listed if piece.size]
    return tuple(pieces)


@dataclass(frozen=True, slots=True)
class LinkedSizes:
    """The bytes that the models of a program take; `data` is all their .data and .bss."""

    code: int
    weights: int
    data: int


def model_sizes(program: tuple[Piece, ...], empty: tuple[Piece, ...]) -> LinkedSizes:
    """Return what models add to the empty program.

    The application and its samples are not the models'; what they need of the libraries is, as
    far as the empty program does not need it, too.
    """

    def total(
        pieces: tuple[Piece, ...], outputs: tuple[str, ...], which: Callable[[Piece], bool]
    ) -> int:
        return sum(p.size for p in pieces if p.output in outputs and which(p))

    def added(outputs: tuple[str, ...], own: Callable[[Piece], bool]) -> int:
        library = total(program, outputs, lambda p: p.is_library)
        library -= total(empty, outputs, lambda p: p.is_library)
        return total(program, outputs, own) + max(library, 0)

    return LinkedSizes(
        code=added(_FLASH, lambda p: p.is_model and not p.is_weights),
        weights=total(program, _FLASH, lambda p: p.is_weights),
        data=added(_RAM, lambda p: p.is_model),
    )
