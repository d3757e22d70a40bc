"""Counts the instructions of a run on a board's emulator and in its machine code."""

from __future__ import annotations

from microtir.artifact import Artifact
from microtir.boards.board import Board
from microtir.certificate.data import InstructionFacts
from microtir.profiling import board_program, measure
from microtir.profiling.static_count import StaticCount, static_count
from microtir.projects import ProjectOptions


def count_instructions(artifact: Artifact, board: Board) -> InstructionFacts:
    """Build a model for an emulated board, and count the instructions of a run in both ways.

    Raises:
        BoardError: the board has no emulator that counts.
        MissingToolError: a tool is not on this machine; says which package to install.
        BuildError: the compiler's own message.
        EmulatorError: the program failed or did not end.
    """
    with board_program(artifact, board) as project:
        run, machine_code = measure(project), static_count(project)
    least, most = machine_code.least, machine_code.instructions
    if not machine_code.problem and not least <= run.instructions <= most:
        text = f"its count is {least} to {most}, but a run took {run.instructions} instructions"
        machine_code = StaticCount({}, problem=text)
    return InstructionFacts(
        run.board,
        run.compiler,
        (*board.toolchain.flags, ProjectOptions().optimization),
        run.instructions,
        {cost.function: cost.instructions for cost in run.by_function},
        machine_code,
    )
