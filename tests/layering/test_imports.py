"""The layering rule: who imports whom."""

from __future__ import annotations

import re
import sys

import pytest

from microtir.operators import OPERATORS
from tests.layering.import_table import (
    BEHIND_FORMULAS,
    BEHIND_MEANINGS,
    OPTIONAL_THIRD_PARTY,
    UNREACHABLE,
)
from tests.layering.imports import is_within, layering_violations, reachable, third_party
from tests.layering.source import ROOT, module_names, package_modules, parse, report

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def answers(name: str) -> str | None:
    """Whether a module says what operators mean, or how they are computed; None: neither."""
    *folders, last = name.split(".")
    if folders[:1] != ["operators"]:
        return None
    shared = folders == ["operators", "common"]
    if last == "meaning" or (shared and (last == "arrays" or last.endswith("_meaning"))):
        return "meaning"
    of_te = last in ("arithmetic", "windows") or last.endswith("_formula")
    return "formula" if last == "formula" or (shared and of_te) else None


def test_package_keeps_to_its_layers() -> None:
    """Every import inside the package is of a layer below, and of nothing private."""
    found = layering_violations(package_modules())
    assert not found, report(found)


@pytest.mark.parametrize(
    ("path", "line", "reason"),
    [
        ("graph/ir.py", "import microtir.plan.ir", "'plan' lies not below 'graph'"),
        ("plan/cost.py", "from microtir.kernels import candidates", "only driver, lowering"),
        ("plan/cost.py", "from ..kernels.conv import emit", "only driver, lowering"),
        ("graph/__init__.py", "from ..te import compute", "'te' lies not below 'graph'"),
        ("kernels/conv.py", "from microtir.tir.passes import simplify", "only lowering, schedule"),
        ("kernels/conv.py", "from microtir.frontend import tflite", "'frontend' lies not below"),
        ("cli/main.py", "from microtir.memory import place", "only driver, lowering"),
        ("te/ops.py", "from microtir import lowering", "'lowering' lies not below 'te'"),
        ("errors.py", "def f():\n    from microtir import config", "lies not below 'errors'"),
        ("extra/thing.py", "import os", "'extra' has no layer"),
    ],
)
def test_forbidden_import_is_found(path: str, line: str, reason: str) -> None:
    """An import upwards is found, however it is written, and the message says why."""
    modules = [parse(path, line), parse("kernels/candidates.py", ""), parse("config.py", "")]
    found = [text for text in layering_violations(modules) if path in text]
    assert len(found) == 1
    assert reason in found[0]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("memory/placement.py", "from microtir.tir.ir import Allocate"),
        ("memory/placement.py", "from .lifetimes import lifetimes"),
        ("memory/placement.py", "import microtir.plan.ir"),
        ("codegen/interface/header.py", "from microtir.version import __version__"),
        ("lowering/function_lowering.py", "from microtir.tir.passes.simplify import simplify"),
        ("frontend/tflite.py", "from microtir.operators import record_of"),
        ("te/ops.py", "import numpy as np"),
    ],
)
def test_legal_import_passes(path: str, line: str) -> None:
    """The IRs a stage reads and writes, its own files and other packages are not objected to."""
    assert layering_violations([parse(path, line)]) == []


@pytest.mark.parametrize("name", [n for n in module_names() if answers(n)])
def test_meanings_and_formulas_do_not_know_each_other(name: str) -> None:
    """Neither reaches the other, nor what is checked against it, however indirectly."""
    modules = package_modules()
    forbidden = BEHIND_MEANINGS if answers(name) == "meaning" else BEHIND_FORMULAS
    reached = [
        f"{via} imports {target}"
        for target, via in reachable(name, modules).items()
        if is_within(target, forbidden) or answers(target) not in (None, answers(name))
    ]
    assert not reached, f"{name} must not reach {', '.join(reached)}"


@pytest.mark.parametrize("start", sorted(UNREACHABLE))
def test_independent_modules(start: str) -> None:
    """The search over programs reaches no stage, not even through other modules."""
    forbidden, why = UNREACHABLE[start]
    found = reachable(start, package_modules())
    reached = [f"{via} imports {name}" for name, via in found.items() if is_within(name, forbidden)]
    assert found, f"no module {start}"
    assert not reached, f"{start} must not reach {', '.join(reached)}: {why}"


def test_families_have_both() -> None:
    """Every family of operators says what they mean, and how they are computed if they are.

    The test above finds the modules by name.
    """
    names = set(module_names())
    for record in OPERATORS:
        family = record.op.__module__.removeprefix("microtir.").removesuffix(".definition")
        assert f"{family}.meaning" in names
        is_computed = record.formula is not None or record.function is not None
        assert f"{family}.formula" in names or not is_computed


def test_reachable_follows_chains() -> None:
    """A forbidden module two imports away is reached, and the last link is named."""
    modules = [
        parse("rewrite/reference.py", "from microtir.rewrite.helper import x"),
        parse("rewrite/helper.py", "from microtir.te import compute"),
        parse("te/__init__.py", ""),
    ]
    assert reachable("rewrite.reference", modules)["te"] == "rewrite.helper"


def test_third_party_imports_are_declared() -> None:
    """The package imports only the standard library and what pyproject.toml declares."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = {re.split(r"[^\w.-]", line)[0].replace("-", "_") for line in project["dependencies"]}
    allowed = declared | sys.stdlib_module_names | OPTIONAL_THIRD_PARTY.keys() | {"tomllib"}
    found = [
        f"{entry.place}: {entry.target} is not in the dependencies of pyproject.toml"
        for entry in third_party(package_modules())
        if entry.target.split(".")[0] not in allowed
    ]
    assert not found, report(found)
