"""Counts instructions on extreme inputs, and the executed ones whose cycles depend on operands."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from microtir.artifact import Artifact
from microtir.boards.board import Board, ProjectType
from microtir.device.emulate import DEFAULT_TIMEOUT
from microtir.instruction_sets import instruction_set
from microtir.profiling.disassembly import Instruction
from microtir.profiling.measure import BlockCost, Measurement, measure
from microtir.projects.generate import generate
from microtir.projects.options import ProjectOptions, Samples
from microtir.projects.samples import extreme_samples


def count_run(
    artifact: Artifact,
    board: Board,
    samples: Samples | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Measurement:
    """Build a model for an emulated board and count the instructions of one inference.

    Args:
        artifact: a compiled model.
        board: with an emulator that counts.
        samples: the first of them is run; arbitrary values without any.
        timeout: seconds for the emulator.

    Raises:
        BoardError: the board has no emulator that counts.
        MissingToolError: a tool is not on this machine; says which package to install.
        BuildError: the compiler's own message.
        EmulatorError: the program failed or did not end.
    """
    by_model = {} if samples is None else {artifact.metadata.module_name: samples}
    options = ProjectOptions(samples=by_model)
    with tempfile.TemporaryDirectory(prefix="microtir-count-") as scratch:
        folder = Path(scratch) / "model"
        project = generate(artifact, board, ProjectType.BAREMETAL, folder, options=options)
        project.build()
        return measure(project, timeout=timeout)


def extreme_instructions(
    artifact: Artifact, board: Board, timeout: float = DEFAULT_TIMEOUT
) -> Mapping[str, int]:
    """Return the instructions of an inference on each kind of `extreme_samples`, as `count_run`."""
    model = artifact.module.model
    assert model is not None, "profiles are of models"
    return MappingProxyType(
        {
            kind: count_run(artifact, board, samples, timeout).instructions
            for kind, samples in extreme_samples(model.inputs).items()
        }
    )


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
