"""Domains of options: the values that one may take, how they are checked and read from text.

A domain never raises: `problem` says in words what is wrong, so that `Option.check` is the one
place that turns a wrong value into a diagnostic.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from microtir.errors import nearest
from microtir.support.spelled import Spelled

Value = bool | int | str | None  # as stored and as written to JSON; None: derived

_BOOLEANS = {
    "0": False,
    "1": True,
    "false": False,
    "true": True,
    "off": False,
    "on": True,
    "no": False,
    "yes": True,
}
_SIZE = re.compile(r"(-?[0-9]{1,18})([KM]?)(?:i?B)?", re.IGNORECASE)
_UNIT = {"": 1, "K": 1024, "M": 1024 * 1024}


class Domain(ABC):
    """The set of values of one option."""

    __slots__ = ()

    @property
    @abstractmethod
    def type_name(self) -> str:
        """Return the type as a user would call it: bool, int, choice, name."""

    @abstractmethod
    def problem(self, value: object) -> str:
        """Return what is wrong with `value`, or an empty string."""

    @abstractmethod
    def legal(self) -> str:
        """Return the legal values in words."""

    def canonical(self, value: object) -> Value:
        """Return the stored form of a value that has no problem."""
        assert value is None or isinstance(value, (bool, int, str))
        return value

    def from_text(self, text: str) -> object:
        """Return the value that `text` spells; text that spells none comes back, for `problem`."""
        return text

    def choices(self) -> tuple[str, ...]:
        """Return all spellings where they can be listed, else nothing."""
        return ()


@dataclass(frozen=True, slots=True)
class Flag(Domain):
    """True or False. An int is refused: 1 passed for a flag is often a size gone astray."""

    @property
    def type_name(self) -> str:
        return "bool"

    def problem(self, value: object) -> str:
        return "" if isinstance(value, bool) else f"is {_kind(value)}, not true or false"

    def legal(self) -> str:
        return "True, False"

    def from_text(self, text: str) -> object:
        return _BOOLEANS.get(text.strip().lower(), text)

    def choices(self) -> tuple[str, ...]:
        return ("0", "1")


@dataclass(frozen=True, slots=True)
class Integer(Domain):
    """A whole number from `low` to `high`, a power of two where `power` is set.

    `also` is one value outside the range with a meaning of its own, such as -1 for unlimited.
    """

    low: int
    high: int
    power: bool = False
    also: int | None = None

    @property
    def type_name(self) -> str:
        return "int"

    def problem(self, value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, int):
            return f"is {_kind(value)}, not an integer"
        if value == self.also:
            return ""
        if not self.low <= value <= self.high:
            return "is out of range"
        if self.power and value & (value - 1):
            return "is not a power of two"
        return ""

    def legal(self) -> str:
        if self.power:
            powers = (1 << k for k in range(self.high.bit_length()))
            text = ", ".join(str(n) for n in powers if self.low <= n <= self.high)
        else:
            text = f"{self.low} to {self.high}"
        return text if self.also is None else f"{text}, or {self.also}"

    def from_text(self, text: str) -> object:
        match = _SIZE.fullmatch(text.strip())
        return int(match[1]) * _UNIT[match[2].upper()] if match else text


@dataclass(frozen=True, slots=True)
class Choice(Domain):
    """A member of an enum, or its exact spelling."""

    enum: type[Spelled]

    @property
    def type_name(self) -> str:
        return "name"

    def problem(self, value: object) -> str:
        if isinstance(value, self.enum) or (isinstance(value, str) and value in self.choices()):
            return ""
        if not isinstance(value, str):
            return f"is {_kind(value)}, not one of the names"
        return f"is unknown: {nearest(value.lower(), self.choices())}".removesuffix(": ")

    def canonical(self, value: object) -> Value:
        return str(value)

    def legal(self) -> str:
        return ", ".join(self.choices())

    def choices(self) -> tuple[str, ...]:
        return tuple(str(member) for member in self.enum)


@dataclass(frozen=True, slots=True)
class Word(Domain):
    """Text with a rule of its own: `rule` answers what is wrong, `meaning` states the rule."""

    meaning: str
    rule: Callable[[str], str]

    @property
    def type_name(self) -> str:
        return "str"

    def problem(self, value: object) -> str:
        return self.rule(value) if isinstance(value, str) else f"is {_kind(value)}, not text"

    def legal(self) -> str:
        return self.meaning


@dataclass(frozen=True, slots=True)
class Structure(Domain):
    """A value with a class of its own, which checks it."""

    class_name: str
    meaning: str

    @property
    def type_name(self) -> str:
        return self.class_name

    def problem(self, value: object) -> str:
        """Return nothing: the class that `class_name` names checks in its own constructor."""
        return ""

    def legal(self) -> str:
        return self.meaning


_KINDS: dict[type, str] = {str: "text", int: "an integer", bool: "a boolean"}


def _kind(value: object) -> str:
    return "None" if value is None else _KINDS.get(type(value), f"a {type(value).__name__}")
