"""Reads TOML by type: every key is asked for, and one that nobody asked for is an error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import TypeVar

from microtir.errors import MicrotirError, nearest
from microtir.support.shown import shown
from microtir.support.texts import LINE, Rule

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

E = TypeVar("E", bound=Enum)
T = TypeVar("T")

MAX_BYTES = 2**20  # of a file: a board's has a few thousand


class TomlTable:
    """A table of a TOML file, read key by key.

    Readers return the value of a key, or None where it is absent; `required_*` refuse that.
    `done` refuses keys that were not asked for, so that a misspelt key is never ignored.

    Args:
        values: the parsed table.
        file: where it came from, for messages.
        error: class of the diagnostics.
        path: dotted place of the table in the file; empty for the whole file.
    """

    def __init__(
        self,
        values: Mapping[str, object],
        file: Path,
        error: type[MicrotirError],
        path: str = "",
    ) -> None:
        self.file = file
        self._values = values
        self._error = error
        self._path = path
        self._asked: list[str] = []

    @classmethod
    def load(cls, file: Path, error: type[MicrotirError]) -> TomlTable:
        """Read a file; `error` names line and column where it is not TOML."""
        try:
            with file.open("rb") as stream:
                content = stream.read(MAX_BYTES + 1)
            if len(content) > MAX_BYTES:
                raise error(f"has more than {MAX_BYTES} bytes", where=str(file))
            values = tomllib.loads(content.decode())
        except OSError as failure:
            raise error(f"cannot be read: {failure.strerror}", where=str(file)) from None
        except RecursionError:
            raise error("is nested too deep", where=str(file)) from None
        except ValueError as failure:  # also of a number with more digits than Python reads
            raise error(f"is not TOML: {failure}", where=str(file)) from None
        return cls(values, file, error)

    def problem(self, key: str, what: str, legal: str | None = None) -> MicrotirError:
        """Return a diagnostic about one key."""
        return self._error(what, where=f"{self.file}: {self._dotted(key)}", legal=legal)

    def text(self, key: str, rule: Rule) -> str | None:
        text = self._read(key, "a text that is not empty", lambda v: isinstance(v, str) and v, str)
        return None if text is None else self._checked(key, text, rule)

    def integer(self, key: str) -> int | None:
        return self._read(
            key,
            "a number of at most 63 bits, not negative",
            lambda v: isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 2**63,
            lambda v: int(str(v)),
        )

    def flag(self, key: str) -> bool:
        """Return a boolean; an absent one is false."""
        return bool(self._read(key, "true or false", lambda v: isinstance(v, bool), bool))

    def texts(self, key: str, rule: Rule) -> tuple[str, ...]:
        """Return a list of texts, each of which obeys the rule; an absent one is empty."""

        def is_list(value: object) -> bool:
            return isinstance(value, list) and all(isinstance(v, str) and v for v in value)

        texts = self._read(key, "a list of texts", is_list, _text_tuple) or ()
        return tuple(self._checked(key, text, rule) for text in texts)

    def choice(self, key: str, kind: type[E]) -> E | None:
        text = self.text(key, LINE)
        return None if text is None else self._member(key, text, kind)

    def choices(self, key: str, kind: type[E]) -> tuple[E, ...]:
        """Return a list of choices; an absent one is empty."""
        return tuple(self._member(key, text, kind) for text in self.texts(key, LINE))

    def table(self, key: str) -> TomlTable | None:
        values = self._read(key, "a table", lambda v: isinstance(v, dict), _table_values)
        return None if values is None else self._inner(values, self._dotted(key))

    def tables(self, key: str) -> tuple[TomlTable, ...]:
        """Return a list of tables; an absent one is empty."""

        def is_list(value: object) -> bool:
            return isinstance(value, list) and all(isinstance(v, dict) for v in value)

        tables = self._read(key, "a list of tables", is_list, _table_list) or []
        return tuple(
            self._inner(values, f"{self._dotted(key)}[{number}]")
            for number, values in enumerate(tables)
        )

    def named_tables(self) -> tuple[tuple[str, TomlTable], ...]:
        """Return all entries, where each is a table under a name of the user's choice."""
        return tuple((key, self.required_table(key)) for key in self._values)

    def named_texts(self, rule: Rule) -> dict[str, str]:
        """Return all entries, where each is a text under a name of the user's choice."""
        return {key: self.required_text(key, rule) for key in self._values}

    def required_text(self, key: str, rule: Rule) -> str:
        return self._required(key, self.text(key, rule))

    def required_integer(self, key: str) -> int:
        return self._required(key, self.integer(key))

    def required_choice(self, key: str, kind: type[E]) -> E:
        return self._required(key, self.choice(key, kind))

    def required_table(self, key: str) -> TomlTable:
        return self._required(key, self.table(key))

    def done(self) -> None:
        """Refuse the keys that no reader asked for."""
        for key in self._values:
            if key not in self._asked:
                hint = nearest(key, self._asked)
                what = f"unknown key '{key}'" + (f": {hint}" if hint else "")
                raise self.problem(key, what, ", ".join(self._asked))

    def _read(
        self,
        key: str,
        legal: str,
        accepts: Callable[[object], object],
        convert: Callable[[object], T],
    ) -> T | None:
        self._asked.append(key)
        if key not in self._values:
            return None
        value = self._values[key]
        if not accepts(value):
            raise self.problem(key, f"got {shown(value)}", legal)
        return convert(value)

    def _checked(self, key: str, text: str, rule: Rule) -> str:
        if problem := rule.problem(text):
            raise self.problem(key, f"got {shown(text)}, which {problem}", rule.meaning)
        return text

    def _member(self, key: str, text: str, kind: type[E]) -> E:
        names = [str(member.value) for member in kind]
        if text not in names:
            hint = nearest(text, names)
            raise self.problem(key, f"got '{text}'" + (f": {hint}" if hint else ""),
                               ", ".join(names))  # fmt: skip
        return kind(text)

    def _required(self, key: str, value: T | None) -> T:
        if value is None:
            raise self.problem(key, f"the key '{key}' is missing")
        return value

    def _inner(self, values: Mapping[str, object], path: str) -> TomlTable:
        return TomlTable(values, self.file, self._error, path)

    def _dotted(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key


def _text_tuple(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _table_values(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, dict) else {}


def _table_list(value: object) -> list[dict[str, object]]:
    return [_table_values(item) for item in value] if isinstance(value, list) else []
