"""Says which CPUs the users of a format have, and asks for one where nobody has named any."""

from __future__ import annotations

from microtir.boards import all_boards
from microtir.config import Target
from microtir.errors import Fix, UsageError
from microtir.instruction_sets.core import GENERIC
from microtir.packages.formats import FormatTemplate


def suits(template: FormatTemplate, target: Target) -> bool:
    """Return whether users of the format have CPUs of the target's family, or code is for any."""
    known = template.families
    return not known or target.core is GENERIC or target.family in known


def unnamed_cpu(template: FormatTemplate) -> UsageError:
    """Return what is said where nobody has named the CPU that a package is for.

    Kernels and layouts are chosen for one CPU: on another the same C may take twice the
    instructions, and nothing would show it.
    """
    form = str(template.format)
    boards = [
        board.name
        for board in all_boards()
        if template.chips and form in [support.type.value for support in board.projects]
    ]
    named = "|".join(boards) or "BOARD", "|".join(template.chips) or "CPU"
    return UsageError(
        f"{template.title} needs a plan for one CPU, but no CPU is named",
        where=f"microtir package --format {form}",
        legal="--board {}, --target {}, or --target c (plain C for any CPU)".format(*named),
        fix=Fix(
            "name a target",
            "add --board or --target; microtir boards and microtir targets list them",
        ),
    )
