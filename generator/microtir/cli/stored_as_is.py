"""Say where a model takes stored integers of one scale for those of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from microtir.cli.output import write

if TYPE_CHECKING:
    from microtir.module.ir_module import IRModule


@dataclass(frozen=True, slots=True)
class ChangedValues:
    """An operator whose results stand for other real numbers, as `check` and `compile` print it.

    Args:
        where: file and operator, with its name.
        what: it does, and between which scales.
        fix: what to do about it.
    """

    where: str
    what: str
    fix: str


def changed_values(lowered: IRModule) -> tuple[ChangedValues, ...]:
    """Return the operators of a lowered module that change real values without computing."""
    from microtir.rewrite.requests import requested

    graph = lowered.graph
    if graph is None:
        return ()
    return tuple(
        ChangedValues(f"{one.node.source} ({one.name!r})", one.what, one.fix.command)
        for one in requested.changed_values(graph, lowered.require_config("microtir"))
    )


def write_changed_values(file: str, changed: Sequence[ChangedValues]) -> None:
    """Print them; nothing where there are none."""
    if not changed:
        return
    which = "1 operator changes" if len(changed) == 1 else f"{len(changed)} operators change"
    write(f"\n{which} real values, because its reference copies integers between scales:")
    for one in changed:
        write(f"  - {one.where.removeprefix(f'{file}: ')}: {one.what}; {one.fix}")
