"""A frozen mapping from the options of one section to checked values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from microtir.config.domains import Value
from microtir.config.option import Option, Section
from microtir.config.options import find, section_options
from microtir.errors import ConfigError
from microtir.support.shown import shown


@dataclass(frozen=True, slots=True, repr=False)
class OptionMap(Mapping[str, Value]):
    """Every option of `section` with its value; equal and hashable by value.

    Subclasses are what users construct: Executor, Runtime, PassConfig.
    """

    section: Section
    settings: tuple[Value, ...]

    def __getitem__(self, name: str) -> Value:
        option = find(self.section, name)
        return self.settings[section_options(self.section).index(option)]

    def __iter__(self) -> Iterator[str]:
        return iter([option.name for option in section_options(self.section)])

    def __len__(self) -> int:
        return len(self.settings)

    def __contains__(self, name: object) -> bool:
        return any(option.name == name for option in section_options(self.section))

    def known(self) -> dict[str, Value]:
        """Return the options that have a value; derived ones, and quiet ones, are left out."""
        pairs = zip(section_options(self.section), self.settings, strict=True)
        return {
            option.name: value
            for option, value in pairs
            if value is not None and not (option.is_quiet and value == option.default)
        }

    def changed(self) -> dict[str, Value]:
        """Return the options whose values differ from their defaults."""
        pairs = zip(section_options(self.section), self.settings, strict=True)
        return {option.name: value for option, value in pairs if value != option.default}

    def check_built(self) -> None:
        """Refuse values whose stages do not exist yet.

        Raises:
            ConfigError: names the option and what to use instead.
        """
        for option, value in zip(section_options(self.section), self.settings, strict=True):
            option.check_built(value)

    def _flag(self, name: str) -> bool:
        value = self[name]
        assert isinstance(value, bool)
        return value

    def _number(self, name: str) -> int | None:
        value = self[name]
        assert value is None or (isinstance(value, int) and not isinstance(value, bool))
        return value


def checked(section: Section, options: object, where: str) -> dict[str, Value]:
    """Return all options of `section`: those of `given` after their checks, the others at default.

    Raises:
        ConfigError: `given` is no mapping, names an unknown option, or has an illegal value.
    """
    if options is None:
        options = {}
    if not isinstance(options, Mapping):
        raise ConfigError(
            f"{where} options are {shown(options)}, which is not a mapping of names to values",
            where=where,
            legal=", ".join(option.name for option in section_options(section)),
        )
    values = {option.name: option.default for option in section_options(section)}
    for name, value in options.items():
        option = find(section, name)
        values[option.name] = option.check(value)
    return values


def store(instance: object, **fields: Any) -> None:
    """Set the fields of a frozen instance, from its constructor."""
    for name, value in fields.items():
        object.__setattr__(instance, name, value)


def described(section: Section) -> Mapping[str, Option]:
    """Return the options of `section` by name, with type, default, legal values and help."""
    return {option.name: option for option in section_options(section)}
