"""Facts of dataclasses as values and as text of JSON, for files that hold many of them.

`dataclasses.asdict` copies each value with all that is in it, and the indenting writer of `json` is
a generator for each piece of text: for a model of a thousand layers either takes longer than to
place its buffers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

_INDENT = "  "
_encoded = json.JSONEncoder().encode
_quoted = json.encoder.encode_basestring_ascii


@cache
def _names(kind: type) -> tuple[str, ...]:
    """Return the fields of a dataclass, or nothing for another class."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def plain(value: object) -> object:
    """Return a value with mappings in the place of dataclasses, as `dataclasses.asdict` does."""
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, list):
        return list(map(plain, value))
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    kind: Any = type(value)
    names = _names(kind)
    return {name: plain(getattr(value, name)) for name in names} if names else value


def indented(value: object, before: str = "\n") -> str:
    """Return the text that `json.dumps` writes with an indent of 2.

    Args:
        value: mappings with texts as keys, sequences, texts, numbers, booleans and None.
        before: what stands before the closing bracket.
    """
    if isinstance(value, str):
        return _quoted(value)
    inner = before + _INDENT
    if isinstance(value, Mapping):
        pairs = (f"{_quoted(name)}: {indented(one, inner)}" for name, one in value.items())
        return _enclosed("{", pairs, before, "}")
    if isinstance(value, tuple | list):
        return _enclosed("[", (indented(one, inner) for one in value), before, "]")
    # A number of a class of its own, such as a member of an Enum, is written as json writes it.
    return repr(value) if type(value) is int else _encoded(value)


def _enclosed(opening: str, parts: Iterable[str], before: str, closing: str) -> str:
    inner = before + _INDENT
    text = f",{inner}".join(parts)
    return f"{opening}{inner}{text}{before}{closing}" if text else opening + closing
