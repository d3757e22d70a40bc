"""Take fields out of JSON of an archive, each of the type that it must have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from microtir.errors import ModelFileError
from microtir.support.reading import WrongDataError, parse_json
from microtir.support.shown import shown

MOST_ITEMS = 1 << 18
"""Most entries of a list or object; each becomes Python objects far larger than its text."""


@dataclass(frozen=True, slots=True)
class Record:
    """An object of JSON.

    Args:
        fields: its values by name; those that nobody asks for are no error, as later versions of
            the format have more.
        file: the model, for errors.
        place: of the object in the archive, for errors.
    """

    fields: Mapping[str, object]
    file: str
    place: str

    def text(self, name: str, default: str | None = None) -> str:
        """Return a field that is a string."""
        value = self.fields.get(name, default)
        if not isinstance(value, str):
            raise self.wrong(name, "a text")
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """Return a field that is a whole number."""
        value = self.fields.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(name, "a whole number")
        return value

    def flag(self, name: str, default: bool | None = None) -> bool:
        """Return a field that is a boolean."""
        value = self.fields.get(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def record(self, name: str) -> Record:
        """Return a field that is an object."""
        return self._as_record(self.fields.get(name), name)

    def records(self, name: str) -> tuple[Record, ...]:
        """Return a field that is a list of objects."""
        return tuple(
            self._as_record(value, f"{name}[{number}]")
            for number, value in enumerate(self.items(name))
        )

    def items(self, name: str) -> list[object]:
        """Return a field that is a list."""
        value = self.fields.get(name)
        if not isinstance(value, list) or len(value) > MOST_ITEMS:
            raise self.wrong(name, f"a list of at most {MOST_ITEMS} entries")
        return value

    def named(self, name: str) -> Iterator[tuple[str, Record]]:
        """Yield the entries of a field that is an object of objects."""
        inner = self.record(name)
        if len(inner.fields) > MOST_ITEMS:
            raise self.wrong(name, f"at most {MOST_ITEMS} entries")
        for title in inner.fields:
            yield title, inner.record(title)

    def only(self) -> tuple[str, object]:
        """Return the name and value of a union: an object with one entry."""
        if len(self.fields) != 1:
            raise self.malformed(f"it has {len(self.fields)} entries", "one")
        return next(iter(self.fields.items()))

    def inner(self, value: object) -> Record:
        """Return a value in this object that is an object itself."""
        return self._as_record(value, "")

    def malformed(self, what: str, legal: str | None = None) -> ModelFileError:
        """Return the error for what contradicts the format."""
        where = f"{self.file}: {self.place}" if self.place else self.file
        return ModelFileError(what, where=where, legal=legal, fix="export the model again")

    def wrong(self, name: str, legal: str) -> ModelFileError:
        """Return the error for a field of another type."""
        is_there = name in self.fields
        what = f"is {shown(str(self.fields[name])[:100])}" if is_there else "is missing"
        return self.malformed(f"'{name}' {what}", legal)

    def _as_record(self, value: object, name: str) -> Record:
        if not isinstance(value, dict):
            raise self.wrong(name, "an object")
        return Record(value, self.file, f"{self.place}.{name}" if name else self.place)


def parse_record(data: bytes, file: str, place: str) -> Record:
    """Return the object that a member of an archive holds as JSON.

    Raises:
        ModelFileError: it is no JSON, nested too deep, or another value.
    """
    try:
        value = parse_json(data)
    except WrongDataError as error:
        raise ModelFileError(
            error.what, where=f"{file}: {place}", fix="export the model again"
        ) from None
    return Record({"": value}, file, place).record("")
