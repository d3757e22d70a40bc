"""Sample values of every option, legal and not: for tests over all pairs of options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from microtir.config.option import Option, Section
from microtir.config.options import OPTIONS

# Options of what the default configuration does not have: another executor, a pool.
_EXECUTORS = {Section.EXECUTOR_GRAPH: "graph", Section.EXECUTOR_DEBUG: "debug"}
_OF_NOTHING = (*_EXECUTORS, Section.CONSTANT_POOL)
_A_CONSTANT_POOL = "flash"


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of an option, for `assemble`.

    `accepted` says whether alone it is accepted; `companion` is the name and the value of the
    option without which it is refused, if that is so.
    """

    option: Option
    value: object
    accepted: bool
    companion: tuple[str, object] | None = None


def all_values() -> Iterator[Sample]:
    """Yield legal, not yet built, and illegal values of every option, in the order of the table.

    Attributes of a target have no entries of their own: `targets` has whole target strings.
    """
    for option in OPTIONS:
        if option.section is Section.TARGET:
            continue
        good, bad = option.domain.samples()
        for value in good:
            companion = _companion(option, value)
            yield Sample(option, value, not companion and _is_built(option, value), companion)
        for value in bad:
            yield Sample(option, value, accepted=False)


def _is_built(option: Option, value: object) -> bool:
    if option.section in _OF_NOTHING:
        return False
    if None in option.pending:
        return value == option.default
    return value not in option.pending


def _companion(option: Option, value: object) -> tuple[str, object] | None:
    if option.section in _EXECUTORS:
        return "executor", _EXECUTORS[option.section]
    if option.section is Section.CONSTANT_POOL:
        return "constant_pools", _A_CONSTANT_POOL
    if option.name == "unpacked-api" and value is False:
        return "interface-api", "packed"
    if option.name in ("memory.input_pool", "memory.output_pool") and value:
        return "memory.use_workspace_io", True
    return None
