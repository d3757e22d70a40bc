"""Finds the programs that parts of the evidence need, before any work is done."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping

from microtir.errors import Fix, ToolError

NEEDED: Mapping[str, Mapping[str, str]] = {
    "coverage": {"gcc": "gcc", "gcov": "gcc"},
    "misra": {"cppcheck": "cppcheck"},
}
"""The programs of each part, with the package of Debian and Ubuntu that holds each."""


def programs_of(part: str) -> dict[str, str]:
    """Return the paths of the programs of a part; they were found by `check_programs`."""
    return {name: shutil.which(name) or name for name in NEEDED[part]}


def check_programs(without: Collection[str]) -> None:
    """Refuse to begin without the programs of a part.

    Raises:
        ToolError: names every program that is missing, and what to install.
    """
    parts = {part: names for part, names in NEEDED.items() if part not in without}
    missing = [
        (name, package, part)
        for part, packages in parts.items()
        for name, package in packages.items()
        if shutil.which(name) is None
    ]
    if missing:
        names = ", ".join(name for name, _, _ in missing)
        packages = " ".join(dict.fromkeys(package for _, package, _ in missing))
        left_out = " ".join(dict.fromkeys(f"--without {part}" for _, _, part in missing))
        raise ToolError(
            f"not on this machine: {names}",
            where="microtir evidence",
            legal="gcc and gcov for the coverage, cppcheck for MISRA C",
            fix=Fix.of(
                f"install the packages (apt install {packages}), or ",
                Fix("name the parts in `without`", f"add {left_out}"),
            ),
        )
