"""Programs that fail, hang or do not fit, and counts that are known beforehand."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from microtir.artifact import Artifact
from microtir.boards import ProjectType, load_board
from microtir.boards.errors import (
    BoardError,
    BuildError,
    EmulatorError,
    ModelTooLargeError,
    ProjectError,
)
from microtir.boards.toolchain import symbols
from microtir.config import CompilationConfig, ConstantPoolInfo, WorkspacePoolInfo
from microtir.profiling import measure
from microtir.projects import Project, ProjectOptions, Samples, generate
from tests.support.board_projects import (
    digits,
    digits_samples,
    digits_with,
    with_main,
    with_model,
)

COUNTED = """
#include "platform.h"
static volatile uint32_t sink;
int32_t test_run(void);
__attribute__((noinline)) static void helper(uint32_t turns)
{
    __asm volatile("1: SUBTRACT\\n\\tBRANCH" : "+r"(turns) : : "cc");
}
__attribute__((noinline)) static void test_first(void) { helper(10); sink = 1; }
__attribute__((noinline)) static void test_second(void) { helper(TURNS); sink = 2; }
__attribute__((noinline)) int32_t test_run(void)
{
    test_first();
    test_second();
    return 0;
}
static int32_t hop(void) { return test_run(); }
int32_t (*volatile call)(void) = hop;
int main(void)
{
    platform_init();
    helper(777);
    int16_t status = (int16_t)call();
    helper(888);
    status = (int16_t)(status + call());
    platform_exit(status);
    return 0;
}
"""
LOOPS = {
    "mps2_an386": ("subs %0, #1", "bne 1b"),
    "microbit": ("sub %0, #1", "bne 1b"),
    "riscv32": ("addi %0, %0, -1", "bnez %0, 1b"),
    "atmega2560": ("subi %A0, 1", "brne 1b"),
}


def _empty(name: str, folder: Path, main: str) -> Project:
    return with_main(generate([], name, ProjectType.BAREMETAL, folder), main)


@pytest.mark.parametrize("name", LOOPS)
def test_counts_are_exact(name: str, tmp_path: Path) -> None:
    """100 more turns of a loop of two instructions are 200 instructions of the layer around it.

    The run function is reached by a jump from another function, and runs twice: neither the
    application nor the second inference is counted.
    """
    subtract, branch = LOOPS[name]
    text = COUNTED.replace("SUBTRACT", subtract).replace("BRANCH", branch)
    empty = generate([], name, ProjectType.BAREMETAL, tmp_path / "p")
    project = with_model(empty, "test_run", ("test_first", "test_second"))
    found = []
    for turns in (20, 120):
        with_main(project, text.replace("TURNS", str(turns)))
        project.build()
        found.append(measure(project))
    assert measure(project) == found[1]
    before, after = (m.by_function for m in found)
    assert after[2].instructions - before[2].instructions == 200
    assert before[:2] == after[:2]
    assert [cost.calls for cost in after] == [1, 1, 1]
    assert found[1].instructions - found[0].instructions == 200
    if found[0].blocks:
        by_block = sum(block.instructions * block.executions for block in found[1].blocks)
        assert by_block == found[1].instructions
    else:
        assert found[1].cycles is not None and found[0].cycles is not None
        assert found[1].cycles - found[0].cycles == 300  # a branch that is taken takes two cycles


def test_bad_access_is_a_fault(tmp_path: Path) -> None:
    """A read where there is no memory ends the program with a message and status 97."""
    text = """
#include "platform.h"
int main(void)
{
    platform_init();
    return *(volatile int *)0x90000000;
}
"""
    for name in ("mps2_an500", "riscv32"):
        project = _empty(name, tmp_path / name, text)
        project.build()
        result = project.run(timeout=20)
        assert result.status == 97
        assert result.output.startswith("fault: a memory access or an instruction is not allowed")


def test_wrong_output_is_found_on_the_board(tmp_path: Path) -> None:
    """One wrong expected value makes the exit status 1 and names sample, index and values."""
    right = digits_samples(2)
    outputs = right.outputs["probabilities"].copy()
    outputs[1, 0, 7] ^= 1
    samples = Samples(right.inputs, {"probabilities": outputs})
    project = generate(
        digits("c -mcpu=cortex-m4"),
        "mps2_an386",
        ProjectType.BAREMETAL,
        tmp_path / "p",
        options=ProjectOptions(samples={"digits": samples}),
    )
    project.build()
    result = project.run()
    assert result.status == 1
    assert "digits sample 0 probabilities equal\n" in result.output
    computed, wanted = right.outputs["probabilities"][1, 0, 7], outputs[1, 0, 7]
    line = f"digits sample 1 probabilities differs at 7: {computed} instead of {wanted}\n"
    assert line in result.output


def test_program_that_hangs(tmp_path: Path) -> None:
    """A program that does not end is stopped, and its last output is shown."""
    text = """
#include "platform.h"
#include "text.h"
int main(void)
{
    platform_init();
    text_write("almost there\\n");
    for (;;) {
    }
}
"""
    for name in ("mps2_an385", "atmega2560"):
        project = _empty(name, tmp_path / name, text)
        project.build()
        with pytest.raises(EmulatorError, match=r"did not end in 2 seconds(.|\n)*almost there"):
            project.run(timeout=2)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("microbit", "overflowed by"),
        ("riscv32", "overflowed by"),
        ("atmega2560", "not within region|RAM is too small"),
    ],
)
def test_too_much_ram_is_refused_by_the_linker(name: str, reason: str, tmp_path: Path) -> None:
    """Variables and stack together may not be larger than the memory."""
    text = '#include "platform.h"\nstatic volatile uint8_t large[SIZE];\n'
    text += "int main(void) { large[1] = 1; return large[0]; }\n"
    project = _empty(name, tmp_path / "p", text)
    ram = project.board.data
    assert ram is not None
    stack = project.board.support(ProjectType.BAREMETAL).stack
    with_main(project, text.replace("SIZE", str(ram.size - stack - 1024)))
    project.build()
    with_main(project, text.replace("SIZE", str(ram.size - stack + 64)))
    with pytest.raises(BuildError, match=reason) as caught:
        project.build()
    assert str(project.folder) in str(caught.value)


def test_models_share_their_memory(tmp_path: Path) -> None:
    """Two models in one project run one after the other in the workspace of one."""
    target = "c -mcpu=cortex-m4"
    models = [digits(target, "first"), digits(target, "second")]
    project = generate(models, "mps2_an386", ProjectType.BAREMETAL, tmp_path / "p")
    project.build()
    result = project.run()
    values = [line.split(" = ")[1] for line in result.output.splitlines() if " = " in line]
    assert len(values) == 2
    assert values[0] == values[1]
    sizes = {s.name: s.size for s in symbols(project.board.toolchain, project.program_path)}
    model = models[0].module.model
    assert model is not None
    # A union is as large as its largest member, but a multiple of its alignment.
    assert 0 <= sizes["workspace"] - model.memory.workspace_size < model.memory.alignment
    assert sizes["tensors"] == sum(port.type.bytes for port in model.ports)
    assert measure(project, "second").instructions == measure(project, "first").instructions
    with pytest.raises(ProjectError, match=r"several models(.|\n)*first, second"):
        measure(project)


def test_pools_lie_in_the_memories_of_the_board(tmp_path: Path) -> None:
    """A pool with the section of a memory is at its address, and the results are the same."""
    psram = 0x2100_0000
    sram = WorkspacePoolInfo("sram", (), {"size_hint_bytes": 600})
    slow = WorkspacePoolInfo("psram", (), {"section": ".psram", "read_latency_cycles": 7})
    internal = {"size_hint_bytes": 300, "is_internal": True, "section": ".psram.own"}
    own = WorkspacePoolInfo("own", (), internal)
    plain = CompilationConfig(targets="c -mcpu=cortex-m4", module_name="first")
    artifacts = [
        digits_with(plain.with_(workspace_pools=[slow, sram])),
        digits_with(plain.with_(module_name="second", workspace_pools=[own, sram, slow])),
    ]
    samples = digits_samples(2)
    project = generate(
        artifacts, "mps2_an386", ProjectType.BAREMETAL, tmp_path / "p",
        options=ProjectOptions(samples={"first": samples, "second": samples}),
    )  # fmt: skip
    project.build()
    assert project.run().status == 0
    found = {s.name: s for s in symbols(project.board.toolchain, project.program_path)}
    taken = [_sizes(artifact) for artifact in artifacts]
    assert all(0 < pools["sram"] <= 600 and pools["psram"] > 0 for pools in taken)
    assert found["pool_psram"].address >= psram > found["pool_sram"].address >= 0x2000_0000
    assert found["second_own_memory"].address >= psram
    assert found["second_own_memory"].size == taken[1]["own"] > 200
    assert found["pool_psram"].size >= max(pools["psram"] for pools in taken)


@pytest.mark.parametrize("is_internal", [True, False])
def test_constant_pools_lie_in_the_memories_of_the_board(tmp_path: Path, is_internal: bool) -> None:
    """Weights in RAM that start-up code fills and in a second flash: there, and read from there."""
    psram, end = 0x2100_0000, 0x2200_0000
    known = {"is_internal": is_internal}
    fast = ConstantPoolInfo(
        "fast", (), {**known, "size_hint_bytes": 300, "section": ".psram.rodata"}
    )
    rest = ConstantPoolInfo("rest", (), {**known, "section": ".rodata.rest"})
    config = CompilationConfig(targets="c -mcpu=cortex-m4", constant_pools=[fast, rest])
    artifact = digits_with(config.with_(module_name="net"))
    project = generate(
        artifact, "mps2_an386", ProjectType.BAREMETAL, tmp_path / "p",
        options=ProjectOptions(samples={"net": digits_samples(2)}),
    )  # fmt: skip
    project.build()
    assert project.run().status == 0
    found = {s.name: s for s in symbols(project.board.toolchain, project.program_path)}
    there = [s for s in found.values() if psram <= s.address < end and s.size]
    size = artifact.metadata.constant_pools[0].size
    assert size - 16 <= sum(symbol.size for symbol in there) <= size <= 300
    if not is_internal:
        assert found["net_pool_rest"].address < psram


def test_constants_in_a_second_flash(tmp_path: Path) -> None:
    """A section of a flash is loaded with the program: nothing copies it."""
    pool = ConstantPoolInfo("slow", (), {"section": ".sram", "is_internal": True})
    config = CompilationConfig(
        targets="c -mcpu=cortex-m55", constant_pools=[pool], module_name="net"
    )
    artifact = digits_with(config)
    project = generate(
        artifact, "mps3_an547", ProjectType.BAREMETAL, tmp_path / "p",
        options=ProjectOptions(samples={"net": digits_samples(1)}),
    )  # fmt: skip
    project.build()
    assert project.run().status == 0
    found = {s.name: s for s in symbols(project.board.toolchain, project.program_path)}
    names = set(re.findall(r"(net_layer\w+)\[", artifact.source("net_weights.c")))
    assert names and all(0x0100_0000 <= found[n].address < 0x0120_0000 for n in names)


def test_a_pool_that_its_memory_cannot_hold_is_refused(tmp_path: Path) -> None:
    """The check of fit knows which memory a section is in."""
    pool = ConstantPoolInfo("slow", (), {"section": ".psram.rodata", "is_internal": True})
    config = CompilationConfig(
        targets="c -mcpu=cortex-m4", constant_pools=[pool], module_name="net"
    )
    board = load_board("mps2_an386")
    memories = tuple(replace(m, size=256) if m.name == "psram" else m for m in board.memories)
    with pytest.raises(ModelTooLargeError) as caught:
        generate(
            digits_with(config), replace(board, memories=memories), ProjectType.BAREMETAL,
            tmp_path / "p",
        )  # fmt: skip
    assert "bytes of psram, which has 256" in str(caught.value)
    assert "constants in pool slow" in str(caught.value)


def _sizes(artifact: Artifact) -> dict[str, int]:
    memory = artifact.metadata.memory
    assert memory is not None
    return {pool.name: pool.size for pool in memory.pools}


def test_compiler_error_is_shown(tmp_path: Path) -> None:
    """The compiler's own message and the folder to look in are shown."""
    project = _empty("mps2_an386", tmp_path / "p", "int main(void) { return nothing; }\n")
    with pytest.raises(BuildError, match="'nothing' undeclared") as caught:
        project.build()
    assert str(project.folder) in str(caught.value)


def test_host_counts_nothing(tmp_path: Path) -> None:
    """The host runs programs, but no emulator counts its instructions."""
    project = generate(digits("c"), "host", ProjectType.BAREMETAL, tmp_path / "p")
    project.build()
    with pytest.raises(BoardError, match="cannot be counted on 'host'"):
        measure(project)
