"""What is so of one family of CPUs stands in the folder of its instruction set."""

from __future__ import annotations

import ast

from microtir.config import Family
from microtir.instruction_sets import INSTRUCTION_SETS
from microtir.instruction_sets.core import GENERIC
from tests.layering.source import package_modules

FOLDER = "instruction_sets"


def test_no_other_folder_speaks_of_a_family() -> None:
    """Other code asks the instruction set, or for a feature; it may ask whether there is a CPU."""
    named = [
        f"{module.path}:{node.lineno}: Family.{node.attr}"
        for module in package_modules()
        if not module.name.startswith(FOLDER)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "Family"
        and node.attr != GENERIC.family.name
    ]
    assert named == []


def test_each_family_has_one_instruction_set() -> None:
    """The table has a row for each family, whose CPUs are all of that family."""
    assert {known.family for known in INSTRUCTION_SETS} == set(Family) - {GENERIC.family}
    assert len({known.family for known in INSTRUCTION_SETS}) == len(INSTRUCTION_SETS)
    for known in INSTRUCTION_SETS:
        assert {core.family for core in (*known.cpus, *known.architectures)} == {known.family}
