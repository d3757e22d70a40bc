"""Budget: limits of a build, in bytes."""

from __future__ import annotations

from dataclasses import dataclass, fields

from microtir.config.option import Section
from microtir.config.options import find


@dataclass(frozen=True, slots=True)
class Budget:
    """Bytes of RAM, flash and stack that a build may use; None is no limit.

    What each limit is compared with is in the option table.

    Raises:
        ConfigError: a limit is no int, or less than 1.
    """

    ram: int | None = None
    flash: int | None = None
    stack: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            find(Section.BUDGET, field.name).check(getattr(self, field.name))

    def check_built(self) -> None:
        """Refuse a limit that nothing checks yet.

        Raises:
            ConfigError: names the limit.
        """
        for field in fields(self):
            find(Section.BUDGET, field.name).check_built(getattr(self, field.name))

    def known(self) -> dict[str, int]:
        """Return the limits that are set."""
        return {
            field.name: limit
            for field in fields(self)
            if (limit := getattr(self, field.name)) is not None
        }
