"""A second opinion on the static count: PyPI's cortex-cycle-budget reads the same program.

It counts each instruction once for each call, since it knows no loops. So its instructions are
weighted with how often the emulator executed them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from microtir.boards import ProjectType, load_board
from microtir.boards.toolchain import capture
from microtir.profiling.disassembly import disassemble
from microtir.profiling.measure import measure
from microtir.profiling.static_count import static_count
from microtir.projects import generate
from tests.support.board_projects import digits, profiled

VARIANTS = {"mps2_an386": "m4", "mps2_an505": "m33"}


@pytest.mark.soak_only
@pytest.mark.compiler_version
@pytest.mark.parametrize("name", VARIANTS)
def test_another_reader_agrees(name: str, tmp_path: Path) -> None:
    """It finds the instructions that we find, and with turns of loops as many as we count."""
    package = pytest.importorskip("cortex_cycle_budget", reason="cortex-cycle-budget is missing")
    board = load_board(name)
    project = generate(digits(str(board.target)), board, ProjectType.BAREMETAL, tmp_path / "p")
    program = project.build()
    counted, measured = static_count(project), measure(project)
    timing = package.resolve_timing_table(VARIANTS[name])
    text = capture([f"{board.toolchain.prefix}objdump", "-d", str(program)])
    known = {
        instruction.address: (instruction.min_cycles, instruction.max_cycles)
        for function in package.parse_disassembly(text, timing)
        for instruction in function.instructions
    }
    own = disassemble(board.toolchain, program, board.target)
    assert set(own) <= set(known)
    executed = least = most = 0
    for block in measured.blocks:
        inside = [known[place] for place in range(block.start, block.end, 2) if place in known]
        executed += block.executions * len(inside)
        least += block.executions * sum(low for low, _ in inside)
        most += block.executions * sum(high for _, high in inside)
    assert abs(executed - counted.instructions) <= counted.instructions * 0.02
    assert least <= profiled(name).cycles <= most
