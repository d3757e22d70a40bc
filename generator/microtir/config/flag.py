"""One flag of the command line, as a parser needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FlagValue = str | int | bool | Path | Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag of the command line.

    Attributes:
        name: as typed: ``--executor-aot-interface-api``.
        metavar: what stands for its value in the help.
        help: one sentence, with default and legal values.
        repeatable: whether it may be given several times.
        choices: all spellings of its value where they can be listed.
        short: another spelling of one dash and one letter, or empty.
        summary: what it does, without default and legal values; empty where `help` is that.
    """

    name: str
    metavar: str
    help: str
    repeatable: bool = False
    choices: tuple[str, ...] = ()
    short: str = ""
    summary: str = ""

    @property
    def dest(self) -> str:
        """Return the Python name that argument parsers give it."""
        return self.name.removeprefix("--").replace("-", "_")
