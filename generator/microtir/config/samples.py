"""Sample values of every option, legal and not: for tests over all pairs of options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from microtir.config.option import Option, Section
from microtir.config.options import OPTIONS

# Options of what a configuration cannot have yet: an executor, a pool.
_OF_NOTHING = (Section.EXECUTOR_GRAPH, Section.CONSTANT_POOL)


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of an option, for `assemble`; `accepted` says whether alone it is accepted."""

    option: Option
    value: object
    accepted: bool


def all_values() -> Iterator[Sample]:
    """Legal, not yet built, and illegal values of every option, in the order of the table.

    Attributes of a target have no entries of their own: `targets` has whole target strings.
    """
    for option in OPTIONS:
        if option.section is Section.TARGET:
            continue
        good, bad = option.domain.samples()
        for value in good:
            yield Sample(option, value, _is_built(option, value))
        for value in bad:
            yield Sample(option, value, accepted=False)


def _is_built(option: Option, value: object) -> bool:
    if option.section in _OF_NOTHING:
        return False
    if None in option.pending:
        return value == option.default
    return value not in option.pending
