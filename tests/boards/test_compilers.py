"""Every compiler whose warnings are tested also runs what it built, at several optimisations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig, Executor
from microtir.artifact import Artifact
from microtir.boards import ProjectType, load_board
from microtir.device.emulate import emulator_command, run_program
from microtir.graph.ir import Graph
from microtir.projects import ProjectOptions, Samples, generate
from tests.support.board_projects import digits, digits_samples
from tests.support.small_models import (
    branching_graph,
    mixed_graph,
    module_of,
    quantised_graph,
    reference_outputs,
    sample_inputs,
    two_ports_graph,
)

_STRICT = "-Werror -Wconversion -Wcast-qual -Wstrict-prototypes -pedantic"


@dataclass(frozen=True)
class Machine:
    """A compiler, the board whose projects it builds, and what runs the program.

    `make` are variables of the Makefile; `emulator` is a program that is not the board's own.
    """

    board: str
    target: str
    make: tuple[str, ...] = ()
    emulator: tuple[str, ...] = ()


# The host's programs are for any x86-64 but where a processor is named.
MACHINES = {
    "gcc": Machine("host", "c", ("CC=gcc", "BOARD_FLAGS=")),
    "clang": Machine("host", "c", ("CC=clang", "BOARD_FLAGS=")),
    "gcc-native": Machine("host", "c -mcpu=native", ("CC=gcc",)),
    "clang-native": Machine("host", "c -mcpu=native", ("CC=clang",)),
    "arm-none-eabi-gcc": Machine("mps2_an386", "c -mcpu=cortex-m4"),
    "riscv64-unknown-elf-gcc": Machine("riscv32", "c -march=rv32imc"),
    "avr-gcc": Machine("atmega2560", "c -mcpu=atmega2560"),
    "aarch64-linux-gnu-gcc": Machine(
        "host", "c -mcpu=aarch64", ("CC=aarch64-linux-gnu-gcc", "BOARD_FLAGS=-static"),
        ("qemu-aarch64",),
    ),
}  # fmt: skip
LEVELS = ("-O0", "-O3", "-O2", "-Os")
# Every machine compiles the example at -O3, and the small models at -O2 or at -Os.  Clang, and the
# compiler whose int has 16 bits, also compile the example without optimisation.
# The soak has the example and the small models at every level of every machine.
EXAMPLE = {"-O3": tuple(MACHINES), "-O0": ("clang-native", "avr-gcc")}
SMALL_MODELS = {
    "-O2": ("gcc", "clang", "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc", "avr-gcc"),
    "-Os": ("gcc-native", "clang-native", "aarch64-linux-gnu-gcc"),
}


def every(usual: Mapping[str, Sequence[str]]) -> list[object]:
    """Every machine with every level; what is not usual is for the soak."""
    return [
        (name, level)
        if name in usual.get(level, ())
        else pytest.param(name, level, marks=pytest.mark.soak_only)
        for name in MACHINES
        for level in LEVELS
    ]


# Name of the program -> its graph, and how it is executed.
SMALL: dict[str, tuple[Graph, Executor]] = {
    "quantised": (quantised_graph(), Executor("aot")),
    "floats": (mixed_graph(), Executor("aot")),
    "branching": (branching_graph(), Executor("aot")),
    "apart": (quantised_graph(), Executor("aot", {"link-params": False})),
    "table": (two_ports_graph(), Executor("graph", {"link-params": True})),
    "packed": (two_ports_graph(), Executor("aot", {"interface-api": "packed"})),
}


@cache
def small_models(target: str) -> tuple[Artifact, ...]:
    """Return the programs of SMALL, compiled for a target."""
    config = CompilationConfig(targets=target)
    return tuple(
        microtir.build(module_of(graph), config.with_(executor=executor, module_name=name))
        for name, (graph, executor) in SMALL.items()
    )


def small_samples() -> dict[str, Samples]:
    """One sample of each of them, with what the reference computes."""
    found = {}
    for name, (graph, _) in SMALL.items():
        inputs = sample_inputs(graph)
        outputs = reference_outputs(graph, inputs)
        found[name] = Samples(
            {key: values[None] for key, values in inputs.items()},
            {key: values[None] for key, values in outputs.items()},
        )
    return found


def run(
    machine: Machine,
    flags: str,
    artifacts: Artifact | Sequence[Artifact],
    samples: Mapping[str, Samples],
    folder: Path,
) -> str:
    """Run what one compiler built, which must find every output right, and return what it says."""
    board = load_board(machine.board)
    options = ProjectOptions(samples=dict(samples))
    project = generate(artifacts, board, ProjectType.BAREMETAL, folder, options=options)
    program = project.build([*machine.make, f"CFLAGS={flags} {_STRICT}"])
    result = run_program([*machine.emulator, *emulator_command(board, program)])
    assert result.status == 0, result.output
    return result.output


@pytest.mark.parametrize(("name", "level"), every(EXAMPLE))
def test_the_example_runs(name: str, level: str, tmp_path: Path) -> None:
    """The example computes what it must; clang's crashed, on constants believed more aligned."""
    machine = MACHINES[name]
    artifact = digits(machine.target)
    output = run(machine, level, artifact, {"digits": digits_samples(2)}, tmp_path / "p")
    assert output.count(" equal\n") == 2, output


@pytest.mark.parametrize(("name", "level"), every(SMALL_MODELS))
def test_small_models_run(name: str, level: str, tmp_path: Path) -> None:
    """Programs of every executor and interface compute what the reference does."""
    machine = MACHINES[name]
    samples = small_samples()
    output = run(machine, level, small_models(machine.target), samples, tmp_path / "p")
    outputs = sum(len(graph.outputs) for graph, _ in SMALL.values())
    assert output.count(" equal\n") == outputs, output
