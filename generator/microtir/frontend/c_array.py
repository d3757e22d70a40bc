"""Finds a TFLite model in C source: an array of its bytes, as `xxd -i` writes it."""

from __future__ import annotations

import re
from pathlib import PurePath

from microtir.errors import ModelFileError

_SUFFIXES = frozenset((".c", ".cc", ".cpp", ".h", ".hpp"))
_IDENTIFIER = slice(4, 8)  # of a TFLite file

# Each is linear in the text, whatever it holds: a match stops at the next brace.
_COMMENT = re.compile(rb"//|/\*")
_NUMBERS = re.compile(rb"\{([0-9a-fA-FxXuUlL,+\s-]*)\}")


def model_in_c(data: bytes, file: str) -> bytes:
    """Return the model of which a C file has an array; the file itself if it is none.

    Args:
        data: of the file.
        file: its name, which tells C by its suffix.

    Raises:
        ModelFileError: it has arrays of several models.
    """
    if PurePath(file).suffix.lower() not in _SUFFIXES:
        return data
    arrays = (_bytes(match[1]) for match in _NUMBERS.finditer(_without_comments(data)))
    models = [array for array in arrays if array[_IDENTIFIER] == b"TFL3"]
    if len(models) > 1:
        raise ModelFileError(
            f"the file has arrays of {len(models)} models",
            where=file,
            legal="one array of a model",
            fix="write each array into a file of its own",
        )
    return models[0] if models else data


def _without_comments(text: bytes) -> bytes:
    """Return C without comments; one that does not end takes the rest."""
    parts, place = [], 0
    while (opening := _COMMENT.search(text, place)) is not None:
        parts.append(text[place : opening.start()])
        mark = b"\n" if opening[0] == b"//" else b"*/"
        end = text.find(mark, opening.end())
        place = len(text) if end < 0 else end + (mark == b"*/") * len(mark)
    return b" ".join([*parts, text[place:]])


def _bytes(text: bytes) -> bytes:
    """Return the bytes of an initialiser, signed ones, too; nothing if its numbers are others."""
    try:
        values = [_number(word) for word in text.decode("ascii").split(",") if word.strip()]
        return bytes(value + 256 * (-128 <= value < 0) for value in values)
    except ValueError:
        return b""


def _number(word: str) -> int:
    """Return an integer of C: decimal, octal or hexadecimal, perhaps with a suffix."""
    digits = word.strip().rstrip("uUlL")
    is_octal = digits.isdecimal() and digits.startswith("0")
    return int(digits, 8 if is_octal else 0)
