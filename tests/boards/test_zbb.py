"""RISC-V with Zbb: clamps without branches in the machine code, outputs as without it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig
from microtir.boards import ProjectType, load_board
from microtir.instruction_sets.riscv import RiscV
from microtir.module.ir_module import IRModule
from microtir.profiling import measure
from microtir.profiling.disassembly import disassemble
from microtir.projects import ProjectOptions, Samples, generate
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


def sampled(case: DspCase) -> Samples:
    """Return the inputs of a case and what the reference makes of them."""
    inputs = case.named_inputs()
    wanted = execute(case.graph, inputs)["y"]
    return Samples({name: x[None] for name, x in inputs.items()}, {"y": wanted[None]})


def test_layers_equal_the_reference(tmp_path: Path) -> None:
    """On the emulated CPU, whose compiler makes the instructions: integers to the bit."""
    board = load_board(BOARD)
    config = CompilationConfig.from_target(board.target).with_(optimize="speed")
    artifacts = [
        microtir.build(IRModule(graph=case.graph), config.with_(module_name=f"m{n}"))
        for n, case in enumerate(CASES)
    ]
    options = ProjectOptions(samples={f"m{n}": sampled(case) for n, case in enumerate(CASES)})
    folder = tmp_path / "p"
    project = generate(artifacts, board, ProjectType.BAREMETAL, folder, options=options)
    project.build()
    result = project.run()
    assert result.status == 0, result.output
    assert result.output.count(" equal\n") == len(CASES), result.output


def test_kinds_and_cycles() -> None:
    """What Zbb adds takes one cycle, as other arithmetic does."""
    machine = RiscV()
    costs = machine.cpu_costs(load_board(BOARD).target.core)
    assert costs is not None
    for word in ("min", "max", "minu", "maxu", "sext.b", "sext.h", "zext.h"):
        assert costs.cycles(machine.kind_of(word), 1) == 1, word
