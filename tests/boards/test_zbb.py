"""RISC-V with Zbb: clamps without branches in the machine code, outputs as without it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig
from microtir.boards import ProjectType, load_board
from microtir.dtype import DType
from microtir.instruction_sets.riscv import RiscV
from microtir.module.ir_module import IRModule
from microtir.profiling import measure
from microtir.profiling.disassembly import disassemble
from microtir.projects import generate, run_samples
from microtir.rewrite.reference import execute
from tests.support.board_projects import digits
from tests.support.dsp_cases import DspCase, convolution, floating, fully_connected

BOARD = "riscv32_zbb"
CASES = [
    *(convolution(seed) for seed in (1, 2)),
    *(convolution(seed, depthwise=True) for seed in (1, 2)),
    *(floating(seed, depthwise=bool(seed % 2)) for seed in (1, 2)),
    *(fully_connected(seed) for seed in (1, 2)),
]


def mnemonics(board_name: str, folder: Path) -> dict[str, Counter[str]]:
    """Instructions of each layer of the example model, built for a board."""
    board = load_board(board_name)
    project = generate(digits(str(board.target)), board, ProjectType.BAREMETAL, folder)
    project.build()
    found: dict[str, Counter[str]] = {}
    for one in disassemble(board.toolchain, project.program_path, board.target).values():
        if one.function.startswith("digits_"):
            found.setdefault(one.function, Counter())[one.mnemonic] += 1
    return found


@pytest.mark.compiler_version
def test_clamps_are_min_and_max(tmp_path: Path) -> None:
    """Blocks have a MAX and a MIN for each output, and no branch beside those of their loops."""
    found = mnemonics(BOARD, tmp_path / "zbb")
    blocks = {name: count for name, count in found.items() if "_straight" in name}
    assert len(blocks) >= 3
    for name, count in blocks.items():
        # Where the last channels overlap those before, their first one is the result of a MIN.
        assert 1 <= count["max"] <= count["min"] <= count["max"] + 1, (name, count)
        jumps = sum(n for word, n in count.items() if re.match(r"b[a-z]+$", word))
        assert jumps <= 4, (name, count)
    assert max(count["max"] for count in blocks.values()) >= 8
    without = mnemonics("riscv32", tmp_path / "plain")
    assert not any(count[word] for count in without.values() for word in ("min", "max"))


def test_fewer_instructions_than_without(tmp_path: Path) -> None:
    """The example model takes less on a CPU with Zbb."""
    counts = []
    for name in (BOARD, "riscv32"):
        artifact = digits(str(load_board(name).target))
        project = generate(artifact, name, ProjectType.BAREMETAL, tmp_path / name)
        project.build()
        counts.append(measure(project).instructions)
    assert counts[0] < counts[1]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_layers_equal_the_reference(case: DspCase) -> None:
    """On the emulated CPU, whose compiler makes the instructions: integers to the bit."""
    board = load_board(BOARD)
    config = CompilationConfig.from_target(board.target).with_(optimize="speed", module_name="m")
    artifact = microtir.build(IRModule(graph=case.graph), config)
    got = run_samples(artifact, board, [case.named_inputs()])[0]["y"]
    want = execute(case.graph, case.named_inputs())["y"]
    if case.graph.outputs[0].dtype is DType.FLOAT32:
        np.testing.assert_allclose(np.float32(got), np.float32(want), rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(got, want)


def test_kinds_and_cycles() -> None:
    """What Zbb adds takes one cycle, as other arithmetic does."""
    machine = RiscV()
    costs = machine.cpu_costs(load_board(BOARD).target.core)
    assert costs is not None
    for word in ("min", "max", "minu", "maxu", "sext.b", "sext.h", "zext.h"):
        assert costs.cycles(machine.kind_of(word), 1) == 1, word
