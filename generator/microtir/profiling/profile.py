"""Profiles an inference on a board, by layer and in all: instructions, cycles, flash, RAM, stack.

Instructions are exact (`measure`).  Cycles are exact on AVR, elsewhere the estimate of `cycles`.
Bytes are those that the model adds to the empty program: neither the application nor its samples
count.  The stack is given twice: what one inference touched, and what the calls in the machine code
can reach.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from microtir.artifact import Artifact, Footprint, causes_by_function, footprint
from microtir.boards.board import Board, EmulatorKind, MemoryKind, ProjectType
from microtir.boards.errors import BoardError
from microtir.boards.search import emulated_like
from microtir.boards.toolchain import symbols
from microtir.device.emulate import DEFAULT_TIMEOUT
from microtir.instruction_sets import instruction_set
from microtir.profiling.cycles import estimate
from microtir.profiling.disassembly import disassemble
from microtir.profiling.link_map import LinkedSizes, Piece, model_sizes, parse_map
from microtir.profiling.measure import FunctionCost, Measurement, counts_instructions, measure
from microtir.profiling.stack_bound import StackBound, read_frames, stack_bound
from microtir.profiling.static_count import StaticCount, static_count
from microtir.profiling.timing import varying_instructions
from microtir.projects.generate import generate
from microtir.projects.options import ProjectOptions
from microtir.projects.project import Project
from microtir.tir.analysis.timing import Cause, Time, worst

_MAP = "build/program.map"


# Operators that are there because an image is computed in bands of columns.
_MOVES_COLUMNS = ("SLICE_COLUMNS", "PLACE_COLUMNS")


@dataclass(frozen=True, slots=True)
class LayerCost:
    """One function of the model; the run function, which calls the others, comes first.

    Args:
        name: of the layer in the model, or the C function's for the run function.
        index: position of the operator in the model file; None for what the file does not have.
        macs_recomputed: of those executed, what another function does, too.
        calls: how often the function was entered.
        code: bytes of the function in flash, without the micro-kernels that it calls.
        causes: why it may take another number of instructions for other data; none if it does not.
        varying: executed instructions whose cycles depend on operands, by mnemonic.
    """

    name: str
    index: int | None
    operator: str
    function: str
    macs: int
    macs_executed: int
    macs_recomputed: int
    instructions: int
    cycles: int
    calls: int
    code: int
    causes: tuple[Cause, ...]
    varying: Mapping[str, int]

    @property
    def time(self) -> Time:
        """Return what the number of instructions depends on."""
        return worst(cause.time for cause in self.causes)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as values of JSON: those of the layer, not of its C function."""
        figures = asdict(self)
        del figures["function"], figures["calls"]
        figures["causes"] = [cause.what for cause in self.causes]
        figures["varying"] = dict(self.varying)
        return figures | {"time": str(self.time), "cycles_estimate": figures.pop("cycles")}


@dataclass(frozen=True, slots=True)
class KernelCode:
    """The bytes of a micro-kernel in flash, and the names of the layers that share it."""

    function: str
    code: int
    layers: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as values of JSON."""
        return asdict(self) | {"layers": list(self.layers)}


@dataclass(frozen=True, slots=True)
class Profile:
    """The costs of one inference; `cycles_are_exact` where the emulator knows them.

    Args:
        targets: what the model was compiled for.
        code, weights: bytes of flash.
        kernels: those that are functions of their own in the program.
        ram: its stack is what one inference touched, found by painting.
        stack_bound: what the calls in the machine code can reach.
        static: what the machine code says of instructions, if that was asked for.
    """

    model: str
    targets: tuple[str, ...]
    board: str
    compiler: str
    layers: tuple[LayerCost, ...]
    kernels: tuple[KernelCode, ...]
    cycles_are_exact: bool
    code: int
    weights: int
    ram: Footprint
    stack_bound: StackBound
    static: StaticCount | None = None

    @property
    def instructions(self) -> int:
        return sum(layer.instructions for layer in self.layers)

    @property
    def cycles(self) -> int:
        return sum(layer.cycles for layer in self.layers)

    @property
    def time(self) -> Time:
        """Return what the number of instructions of an inference depends on."""
        return worst(layer.time for layer in self.layers)

    @property
    def macs_recomputed(self) -> int:
        return sum(layer.macs_recomputed for layer in self.layers)

    @property
    def recomputing(self) -> int:
        """Return the instructions of what is computed twice, by share of layers, and copies."""
        twice = sum(
            layer.instructions * layer.macs_recomputed // layer.macs_executed
            for layer in self.layers
            if layer.macs_executed
        )
        moved = (layer for layer in self.layers if layer.operator in _MOVES_COLUMNS)
        return twice + sum(layer.instructions for layer in moved)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as values of JSON; docs/profile.md says what each is."""
        return {
            "model": self.model,
            "targets": list(self.targets),
            "board": self.board,
            "compiler": self.compiler,
            "instructions": self.instructions,
            "cycles_estimate": self.cycles,
            "time": str(self.time),
            "flash": {
                "code": self.code,
                "weights": self.weights,
                "total": self.code + self.weights,
            },
            "ram": asdict(self.ram) | {"total": self.ram.total},
            "layers": [layer.to_dict() for layer in self.layers],
            "kernels": [kernel.to_dict() for kernel in self.kernels],
            **({"static": asdict(self.static)} if self.static else {}),
        }


def profile(
    artifact: Artifact,
    board: Board,
    *,
    options: ProjectOptions | None = None,
    folder: str | os.PathLike[str] | None = None,
    static: bool = False,
    timeout: float = DEFAULT_TIMEOUT,
) -> Profile:
    """Build a model for an emulated board, run it once and measure everything.

    Args:
        artifact: a compiled model.
        board: with an emulator that counts.
        options: of the project; without samples the model runs on arbitrary values.
        folder: where to leave the project; it is replaced. By default nothing is left.
        static: whether instructions are counted from the machine code, too.
        timeout: seconds for the emulator.

    Raises:
        BoardError: the board has no emulator that counts, or no table of cycles.
        ModelTooLargeError: the model does not fit the board.
        MissingToolError: a tool is not on this machine; says which package to install.
        BuildError: the compiler's own message.
        EmulatorError: the program failed or did not end.
    """
    _check_counting(board)
    options = options or ProjectOptions()
    with tempfile.TemporaryDirectory(prefix="microtir-profile-") as scratch:
        place = Path(scratch) / "model" if folder is None else Path(folder)
        project = generate(
            artifact, board, ProjectType.BAREMETAL, place, force=True, options=options
        )
        pieces = _build(project, options)
        empty = generate([], board, ProjectType.BAREMETAL, Path(scratch) / "empty")
        sizes = model_sizes(pieces, _build(empty, options))
        measured = measure(project, timeout=timeout)
        cycles, bound, varying = _from_machine_code(project, measured)
        kernels = tuple(_kernels(project, artifact))
        counted = static_count(project) if static else None
    result = _profile(artifact, board, measured, cycles, sizes, bound, kernels, varying)
    return replace(result, static=counted)


def _check_counting(board: Board) -> None:
    kind = board.emulator.kind if board.emulator else None
    if not counts_instructions(board):
        raise BoardError(
            f"instructions cannot be counted on '{board.name}'",
            where=f"{board.file}: emulator",
            legal="a board that QEMU or simavr emulates",
            fix=emulated_like(board),
        )
    core = board.target.core
    if kind is EmulatorKind.QEMU and instruction_set(core.family).cpu_costs(core) is None:
        raise BoardError(
            f"microtir has no cycle table for '{board.target}'", where=f"{board.file}: target"
        )


def _build(project: Project, options: ProjectOptions) -> tuple[Piece, ...]:
    """Build with everything that is read afterwards: link map and stack frames."""
    project.build([f"CFLAGS={options.optimization} -g -fstack-usage -Wl,-Map={_MAP}"])
    return parse_map((project.folder / _MAP).read_text(encoding="utf-8"))


def _from_machine_code(
    project: Project, measured: Measurement
) -> tuple[Mapping[str, int], StackBound, Mapping[str, Mapping[str, int]]]:
    """Return cycles by function, the bound of the stack, instructions whose cycles vary."""
    board = project.board
    target = board.target
    program = disassemble(board.toolchain, project.program_path, target)
    machine = instruction_set(target.family)
    costs = machine.cpu_costs(target.core)
    if measured.cycles is not None or costs is None:
        cycles = {cost.function: cost.cycles or 0 for cost in measured.by_function}
    else:
        cycles = estimate(measured.blocks, program, costs, machine)
    bound = stack_bound(
        f"run_{project.models[0].name}",  # the application's function that painting measures
        program,
        read_frames(project.folder / "build"),
        machine,
        machine.return_bytes(sum(m.size for m in board.memories if m.kind is MemoryKind.FLASH)),
    )
    return cycles, bound, varying_instructions(measured.blocks, program, board)


def _kernels(project: Project, artifact: Artifact) -> Iterator[KernelCode]:
    """Yield the micro-kernels of the program; what a compiler made a part of a layer is none."""
    sizes, facts = Counter[str](), artifact.metadata
    for symbol in symbols(project.board.toolchain, project.program_path):
        if symbol.kind in "tT":
            sizes[symbol.name.split(".")[0]] += symbol.size
    names = {layer.function: layer.name for layer in facts.layers}
    for kernel in facts.kernels:
        if code := sizes[kernel.function]:
            callers = tuple(names[f] for f in kernel.layers if f in names)
            yield KernelCode(kernel.function, code, callers)


def _profile(
    artifact: Artifact,
    board: Board,
    measured: Measurement,
    cycles: Mapping[str, int],
    sizes: LinkedSizes,
    bound: StackBound,
    kernels: tuple[KernelCode, ...],
    varying: Mapping[str, Mapping[str, int]],
) -> Profile:
    facts, causes = artifact.metadata, causes_by_function(artifact.module)
    known = {layer.function: layer for layer in facts.layers}

    def layer(cost: FunctionCost) -> LayerCost:
        facts_of = known.get(cost.function)
        return LayerCost(
            name=cost.layer.name if cost.layer else cost.function,
            index=facts_of.index if facts_of and facts_of.index >= 0 else None,
            operator=cost.layer.operator if cost.layer else "main",
            function=cost.function,
            macs=cost.layer.macs if cost.layer else 0,
            macs_executed=facts_of.macs_executed if facts_of else 0,
            macs_recomputed=facts_of.macs_recomputed if facts_of else 0,
            instructions=cost.instructions,
            cycles=cycles.get(cost.function, 0),
            calls=cost.calls,
            code=cost.code,
            causes=causes[cost.function],
            varying=varying.get(cost.function, {}),
        )

    layers = tuple(map(layer, measured.by_function))
    return Profile(
        model=facts.model.file if facts.model else facts.module_name,
        targets=tuple(str(t) for t in artifact.module.require_config("profile").targets),
        board=board.name,
        compiler=measured.compiler,
        layers=layers,
        kernels=kernels,
        cycles_are_exact=measured.cycles is not None,
        code=sizes.code,
        weights=sizes.weights,
        ram=_ram(artifact, board, sizes, measured.stack_painted),
        stack_bound=bound,
    )


def _ram(artifact: Artifact, board: Board, sizes: LinkedSizes, stack: int) -> Footprint:
    memory = artifact.metadata.memory
    assert memory is not None  # `generate` refuses what is no model
    # Arrays of internal pools are in the model's own .bss, unless a linker script moves them.
    inside = sum(p.size for p in memory.pools if p.is_internal and not p.section)
    data = max(sizes.data - inside, 0)
    return footprint(artifact.metadata, data=data, stack=stack, reserve=board.reserve)
