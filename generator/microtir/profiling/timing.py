"""Counts instructions on extreme inputs, and the executed ones whose cycles depend on operands."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from microtir.artifact import Artifact
from microtir.boards.board import Board, ProjectType
from microtir.device.emulate import DEFAULT_TIMEOUT
from microtir.instruction_sets import instruction_set
from microtir.profiling.disassembly import Instruction
from microtir.profiling.measure import BlockCost, measure
from microtir.projects.generate import generate
from microtir.projects.options import ProjectOptions, Samples
from microtir.projects.project import Project
from microtir.projects.samples import extreme_samples


@contextmanager
def board_program(
    artifact: Artifact, board: Board, samples: Samples | None = None
) -> Iterator[Project]:
    """Build a model for a board in a folder that is deleted afterwards.

    Args:
        artifact: a compiled model.
        board: to build for.
        samples: the program runs the first of them; arbitrary values without any.

    Raises:
        MissingToolError: a tool is not on this machine; says which package to install.
        BuildError: the compiler's own message.
    """
    by_model = {} if samples is None else {artifact.metadata.module_name: samples}
    options = ProjectOptions(samples=by_model)
    with tempfile.TemporaryDirectory(prefix="microtir-count-") as scratch:
        folder = Path(scratch) / "model"
        project = generate(artifact, board, ProjectType.BAREMETAL, folder, options=options)
        project.build()
        yield project


def extreme_instructions(
    artifact: Artifact, board: Board, timeout: float = DEFAULT_TIMEOUT
) -> Mapping[str, int]:
    """Return the instructions of an inference on each kind of `extreme_samples`.

    Raises:
        BoardError: the board has no emulator that counts.
        EmulatorError: the program failed or did not end; else as `board_program`.
    """
    model = artifact.module.model
    assert model is not None, "profiles are of models"
    counts = {}
    for kind, samples in extreme_samples(model.inputs).items():
        with board_program(artifact, board, samples) as project:
            counts[kind] = measure(project, timeout=timeout).instructions
    return MappingProxyType(counts)


def varying_instructions(
    blocks: Iterable[BlockCost], program: Mapping[int, Instruction], board: Board
) -> Mapping[str, Mapping[str, int]]:
    """Return executed instructions whose cycles depend on operands: by function, then by mnemonic.

    Args:
        blocks: executed machine code.
        program: all instructions of the program.
        board: whose CPU runs them.
    """
    machine = instruction_set(board.target.family)
    kinds = machine.varying(board.target.core)
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for block in blocks:
        for address in range(block.start, block.end, 2):
            instruction = program.get(address)
            if instruction is not None and machine.kind_of(instruction.mnemonic) in kinds:
                counts[block.function][instruction.mnemonic] += block.executions
    return {function: dict(sorted(some.items())) for function, some in counts.items()}
