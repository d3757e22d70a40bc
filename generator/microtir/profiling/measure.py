"""Counts the instructions of an inference exactly, by layer.

QEMU counts with a plugin of microtir's own, simavr with its runner, which gives cycles, too. Only
what happens between the first instruction of a model's run function and its return is counted, so
that nothing of the application has to be taken off. An instruction belongs to the innermost active
layer function, kernels and library functions included; what no layer is active for is the model's
run function's own: the rows sum exactly to the total.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from microtir.boards.board import Board, EmulatorKind
from microtir.boards.errors import BoardError, EmulatorError, ProjectError
from microtir.boards.toolchain import Symbol, compiler_version, symbols
from microtir.device.compiled_tools import Tool, tool_path
from microtir.device.emulate import DEFAULT_TIMEOUT, RunResult, emulator_command, run_program
from microtir.projects.project import Project, ProjectLayer, ProjectModel


@dataclass(frozen=True, slots=True)
class FunctionCost:
    """The cost of one function in the measured inferences.

    Args:
        layer: the layer that it computes; None for the model's run function, which calls them.
        cycles: exact where the emulator knows them (AVR), else None.
        calls: how often it was entered.
        code: bytes of its machine code in the program, without what it calls.
    """

    function: str
    layer: ProjectLayer | None
    instructions: int
    cycles: int | None
    calls: int
    code: int


@dataclass(frozen=True, slots=True)
class BlockCost:
    """Machine code from `start` to `end` that ran as a whole while `function` was active.

    `taken` of the executions ended in a jump to somewhere else than the code behind it.
    """

    function: str
    start: int
    end: int
    instructions: int  # in the block
    executions: int
    taken: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measured cost of one inference of a model.

    Args:
        instructions: on the emulator, exact and repeatable; the sum of `by_function`.
        cycles: exact on AVR, else None.
        by_function: the run function first, then the layers in the order of the model.
        blocks: for estimates of cycles; empty on AVR.
        stack_painted: bytes of stack that one of the samples used at most, found by painting.
        output: what the program printed.
    """

    model: str
    board: str
    compiler: str
    instructions: int
    cycles: int | None
    by_function: tuple[FunctionCost, ...]
    blocks: tuple[BlockCost, ...]
    stack_painted: int
    output: str


@dataclass(frozen=True, slots=True)
class Region:
    """A range of addresses that a function of the model has."""

    function: str
    layer: ProjectLayer | None
    start: int
    end: int


def measure(
    project: Project, model: str | None = None, timeout: float = DEFAULT_TIMEOUT
) -> Measurement:
    """Measure the first inference of a model of a project that was built.

    Args:
        project: built, for an emulated board.
        model: its module name; needed if the project has several.
        timeout: seconds for the emulator.

    Raises:
        ProjectError: the project is not built, or has no such model.
        BoardError: the board has no emulator that counts.
        MissingToolError: the emulator is not on this machine.
        EmulatorError: the program failed, did not end, or did not run the model.
    """
    program = project.built_program()
    chosen = _model(project, model)
    regions = regions_of(chosen, symbols(project.board.toolchain, program), str(program))
    with tempfile.TemporaryDirectory(prefix="microtir-measure-") as scratch:
        file, out = Path(scratch) / "regions", Path(scratch) / "result"
        file.write_text("".join(f"{r.start:x} {r.end:x} {_kind(r)}\n" for r in regions))
        command = emulator_command(project.board, program, _arguments(project, file, out))
        result = run_program(command, timeout)
        if result.status != 0 or not out.is_file():
            raise EmulatorError(
                f"the program ended with status {result.status}; its output:\n{result.output}",
                where=str(program),
            )
        text = out.read_text()
    if "inferences 1\n" not in text:
        raise EmulatorError(f"the program completed no call of '{chosen.run}'", where=str(program))
    costs = tuple(_costs(text, regions, project))
    return Measurement(
        model=chosen.name,
        board=project.board.name,
        compiler=compiler_version(project.board.toolchain),
        instructions=sum(cost.instructions for cost in costs),
        cycles=None if costs[0].cycles is None else sum(cost.cycles or 0 for cost in costs),
        by_function=costs,
        blocks=tuple(_blocks(text, regions)),
        stack_painted=_stack(result, chosen.name),
        output=result.output,
    )


def _model(project: Project, name: str | None) -> ProjectModel:
    names = [model.name for model in project.models]
    if name is None and len(names) == 1:
        return project.models[0]
    for model in project.models:
        if model.name == name:
            return model
    raise ProjectError(
        "the project has several models" if name is None else f"there is no model '{name}'",
        where="measure(model)",
        legal=", ".join(names),
    )


def _kind(region: Region) -> str:
    return "layer" if region.layer else "run"


def regions_of(model: ProjectModel, symbols: Sequence[Symbol], program: str) -> tuple[Region, ...]:
    """Return address ranges of the model's functions, with gcc's copies (NAME.constprop.0)."""
    code: dict[str, list[Symbol]] = {}
    for symbol in symbols:
        if symbol.kind in "tT" and symbol.size:
            code.setdefault(symbol.name.split(".")[0], []).append(symbol)
    if model.run not in code:
        raise ProjectError(
            f"the program has no function '{model.run}'", where=program, fix="build it again"
        )
    named: list[tuple[str, ProjectLayer | None]] = [(model.run, None)]
    named += [(layer.function, layer) for layer in model.layers]
    return tuple(
        Region(name, layer, symbol.address & ~1, (symbol.address & ~1) + symbol.size)
        for name, layer in named
        for symbol in code.get(name, ())
    )


def counts_instructions(board: Board) -> bool:
    """Return whether the emulator of a board counts instructions."""
    kind = board.emulator.kind if board.emulator else None
    return kind in (EmulatorKind.QEMU, EmulatorKind.SIMAVR)


def _arguments(project: Project, regions: Path, out: Path) -> list[str]:
    """Return the emulator's arguments that make it count."""
    kind = project.board.emulator.kind if project.board.emulator else None
    if kind is EmulatorKind.QEMU:
        plugin = tool_path(Tool.QEMU_PROFILER)
        return ["-plugin", f"file={plugin},regions={regions},out={out}"]
    if kind is EmulatorKind.SIMAVR:
        return ["--regions", str(regions), "--out", str(out)]
    raise BoardError(
        f"instructions cannot be counted on '{project.board.name}'",
        where=f"{project.board.file}: emulator",
        legal="a board that QEMU or simavr emulates",
    )


def _costs(text: str, regions: Sequence[Region], project: Project) -> Iterator[FunctionCost]:
    """Yield the counts by function; the copies of one function are one row."""
    has_cycles = project.board.emulator is not None and (
        project.board.emulator.kind is EmulatorKind.SIMAVR
    )
    rows: dict[str, list[int]] = {}
    for index, *counts in re.findall(r"^region (\d+) (\d+) (\d+) (\d+)$", text, re.MULTILINE):
        sums = rows.setdefault(regions[int(index)].function, [0, 0, 0])
        for position, count in enumerate(counts):
            sums[position] += int(count)
    layers = {region.function: region.layer for region in regions}
    code = Counter[str]()
    for region in regions:
        code[region.function] += region.end - region.start
    for function, (instructions, cycles, calls) in rows.items():
        known = cycles if has_cycles else None
        yield FunctionCost(function, layers[function], instructions, known, calls, code[function])


def _blocks(text: str, regions: Sequence[Region]) -> Iterator[BlockCost]:
    pattern = r"^block (\d+) ([0-9a-f]+) ([0-9a-f]+) (\d+) (\d+) (\d+)$"
    for index, start, end, *counts in re.findall(pattern, text, re.MULTILINE):
        function = regions[int(index)].function
        yield BlockCost(function, int(start, 16), int(end, 16), *map(int, counts))


def _stack(result: RunResult, model: str) -> int:
    match = re.search(rf"^{re.escape(model)} stack (\d+)$", result.output, re.MULTILINE)
    return int(match[1]) if match else 0
