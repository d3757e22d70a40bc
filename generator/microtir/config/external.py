"""External: a third-party kernel library, where it is, and for which operators it is used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePath

from microtir.config.enums import ExternalLibrary
from microtir.config.option import Section
from microtir.config.options import find
from microtir.errors import ConfigError
from microtir.support.arguments import checked_arguments
from microtir.support.shown import shown

_FIELD = "external"
_COST, _ALL = "cost", "all"


@dataclass(frozen=True, slots=True)
class External:
    """Kernels of a library that is found at `path`, a folder of its sources.

    Args:
        library: which one.
        path: the folder; it is read when a model is compiled.
        operators: positions in the model file of the operators that the library computes; None
            leaves the choice to the estimated costs.
        everything: use it wherever it can compute an operator, whatever the cost.

    Raises:
        ConfigError: an unknown library, no path, or both `operators` and `everything`.
    """

    library: ExternalLibrary
    path: str
    operators: tuple[int, ...] | None = None
    everything: bool = False

    def __post_init__(self) -> None:
        if not _is_text(self.path):
            raise _problem(str(self), f"has the path {self.path!r} instead of a folder")
        if self.operators == ():
            raise _problem(str(self), "names no operator that the library computes")
        if self.operators is not None and self.everything:
            raise _problem(str(self), "names single operators and also 'all'")

    def __str__(self) -> str:
        """Return the text that the command line takes."""
        text = f"{self.library}={self.path}"
        if self.everything:
            return f"{text},{_ALL}"
        return text if self.operators is None else ",".join([text, *map(str, self.operators)])

    def without_path(self) -> External:
        """Return a copy whose path is a name only, for records that must not show this machine."""
        return replace(self, path=PurePath(self.path).name or self.path)

    @staticmethod
    @checked_arguments
    def parse(text: str) -> External:
        """Return the External that a text spells; a folder may hold commas, but not end in one.

        Raises:
            ConfigError: it spells none.
        """
        name, equals, rest = text.partition("=")
        names = [str(member) for member in ExternalLibrary]
        if not equals or name.strip() not in names:
            raise _problem(text, "names no library" if equals else "has no '='")
        words = rest.split(",")
        numbers: list[int] = []
        while len(words) > 1 and words[-1].strip().isdecimal():
            numbers.append(int(words.pop()))
        everything = choice = False
        if len(words) > 1 and words[-1].strip() in (_ALL, _COST):
            everything, choice = words[-1].strip() == _ALL, True
            words.pop()
        if choice and numbers:
            raise _problem(text, "names positions of operators as well as 'all' or 'cost'")
        operators = tuple(sorted(set(numbers))) if numbers else None
        return External(ExternalLibrary(name.strip()), ",".join(words), operators, everything)


def externals(value: object) -> tuple[External, ...]:
    """Return the libraries of a configuration.

    Raises:
        ConfigError: an entry is none, or a library is there twice.
    """
    if value is None:
        return ()
    if isinstance(value, str | External):
        value = (value,)
    if not isinstance(value, Iterable):
        raise _problem(value, "is not a sequence of libraries")
    checked = []
    for entry in value:
        if not isinstance(entry, str | External):
            raise _problem(entry, "is not a library")
        checked.append(External.parse(entry) if isinstance(entry, str) else entry)
    libraries = [external.library for external in checked]
    for library in libraries:
        if libraries.count(library) > 1:
            raise _problem(str(library), "is listed twice")
    return tuple(checked)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _problem(value: object, what: str) -> ConfigError:
    return ConfigError(
        f"option '{_FIELD}' is {shown(value)}, which {what}",
        where=_FIELD,
        legal=find(Section.CONFIG, _FIELD).legal(),
    )
