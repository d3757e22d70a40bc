"""Products of four parts on an emulated Cortex-M0."""

from __future__ import annotations

from pathlib import Path

import pytest

from microtir.boards import ProjectType
from microtir.projects import generate
from tests.codegen.test_long_products import TABLES, checks
from tests.support.board_projects import with_main

MAIN = """
#include "platform.h"
int main(void)
{
    platform_init();
    platform_exit(wrong_products(200) == 0 ? 0 : 1);
    return 0;
}
"""


@pytest.mark.parametrize("goal", TABLES)
@pytest.mark.parametrize("level", ["-O0", "-O2", "-Os"])
def test_results_on_the_emulator(goal: str, level: str, tmp_path: Path) -> None:
    """The machine code has the bits of long products, for extreme and arbitrary factors."""
    project = generate([], "microbit", ProjectType.BAREMETAL, tmp_path / "p")
    with_main(project, checks(TABLES[goal]) + MAIN)
    project.build([f"CFLAGS={level}"])
    assert project.run(timeout=60).status == 0


def test_a_wrong_part_is_noticed_on_the_emulator(tmp_path: Path) -> None:
    """The status is that of the comparison."""
    project = generate([], "microbit", ProjectType.BAREMETAL, tmp_path / "p")
    with_main(project, checks(TABLES["speed"]).replace("+ 16384", "+ 16383") + MAIN)
    project.build(["CFLAGS=-O2"])
    assert project.run(timeout=60).status == 1
