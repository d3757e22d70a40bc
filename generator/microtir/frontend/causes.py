"""Problems of a model, grouped by their cause: what is done once about all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from microtir.errors import ExitCode, MicrotirError
from microtir.support.arguments import checked_arguments

_NAMED = 3  # different problems that a title names


@dataclass(frozen=True, slots=True)
class Cause:
    """Problems that one fix removes, in the order of the file.

    Attributes:
        what: in a sentence.
        fix: what to do about all of them.
        problems: one or more.
    """

    what: str
    fix: str | None
    problems: tuple[MicrotirError, ...]

    @property
    def legal(self) -> str | None:
        """Return what would have been accepted; None where that differs from problem to problem."""
        legal = {problem.legal for problem in self.problems}
        return next(iter(legal)) if len(legal) == 1 else None

    @property
    def is_one(self) -> bool:
        """Return whether all its problems say the same, each of another place."""
        return len({problem.what for problem in self.problems}) == 1


@checked_arguments
def causes(problems: Iterable[MicrotirError]) -> tuple[Cause, ...]:
    """Return the causes behind problems, damage first, then by what comes first in the file."""
    groups: dict[tuple[ExitCode, str | None], list[MicrotirError]] = {}
    for problem in problems:
        groups.setdefault((problem.exit_code, problem.fix), []).append(problem)
    causes = [Cause(_title(group), fix, tuple(group)) for (_, fix), group in groups.items()]
    return tuple(sorted(causes, key=lambda cause: -cause.problems[0].exit_code))


def _title(problems: list[MicrotirError]) -> str:
    different = list(dict.fromkeys(problem.what for problem in problems))
    rest = len(different) - _NAMED
    named = "; ".join(different[: _NAMED if rest > 1 else None])
    return f"{named}; and {rest} more" if rest > 1 else named
