"""Defects of microTVM's configuration and planner: D4, D25."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

from microtir import CompilationConfig

PACKAGE = Path(__file__).parents[2] / "generator" / "microtir"


def test_d4_fields_have_one_name() -> None:
    """A field was called `homogenous` outside and `homogeneous` inside; here names are one."""
    config = CompilationConfig(
        targets="c", annotations="acsl", constant_time=True, fault_checks="start", canaries=True
    )
    fields = [field.name for field in dataclasses.fields(config)]
    assert list(config.to_dict()) == fields
    for name in fields:
        assert config.with_(**{name: getattr(config, name)}) == config


_PLAN = """
import microtir
from tests.support.small_models import branching_graph, module_of
options = {"memory.placement": "exact"}
config = microtir.CompilationConfig(targets="c", pass_config=options)
for placed in microtir.build(module_of(branching_graph()), config).metadata.memory.placements:
    print(placed)
"""


def _without_own(text: str) -> str:
    """Return a source file without the numbers that it takes from a generator of its own."""
    return re.sub(r"\brng\.random\(\)", "", text)


def test_d25_plans_do_not_depend_on_the_machine() -> None:
    """The search used the C library's random numbers, which differ between systems.

    Python's are the same everywhere for a generator that is made with a seed.
    """
    plans = set()
    for seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", _PLAN],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": f"{PACKAGE.parent}:{PACKAGE.parents[1]}"},
            capture_output=True,
            text=True,
            check=True,
        )
        plans.add(done.stdout)
    assert len(plans) == 1 and plans != {""}
    for path in (PACKAGE / "memory").rglob("*.py"):
        text = path.read_text("utf-8")
        assert not re.search(r"\brandom\.(?!Random\b)|\bRandom\(\)", _without_own(text)), path
