"""Says for each board what can be done with it on this machine, and what the rest lacks."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.boards.board import Board, EmulatorKind, ProjectType
from microtir.boards.errors import MissingToolError
from microtir.boards.toolchain import missing_program
from microtir.device.compiled_tools import Tool, tool_path
from microtir.projects.buildable import step_problems
from microtir.projects.template import ProjectTemplates

Problems = tuple[MissingToolError, ...]


@dataclass(frozen=True, slots=True)
class Readiness:
    """The readiness of a board on this machine: the problems of each tool, none where all is there.

    Args:
        board: which.
        builds: what the build of each project type lacks; types that another program builds, such
            as an editor, are left out.
        emulator: what the emulator lacks, if the board has one.
        flasher: what the command lacks that writes to the board, if it has one of its own.
    """

    board: Board
    builds: tuple[tuple[ProjectType, Problems], ...]
    emulator: Problems
    flasher: Problems

    @property
    def built(self) -> tuple[ProjectType, ...]:
        """Return the project types that can be built here."""
        return tuple(kind for kind, problems in self.builds if not problems)

    @property
    def problems(self) -> Problems:
        """Return everything that is missing."""
        of_builds = (problem for _, problems in self.builds for problem in problems)
        return (*of_builds, *self.emulator, *self.flasher)


def readiness(board: Board) -> Readiness:
    """Look for the tools of a board; nothing is built, and nothing is installed."""
    files, builds = ProjectTemplates(None, board.folder), []
    for support in board.projects:
        step = files.manifest(support.type).build_for(support)
        if step is not None:
            builds.append((support.type, tuple(step_problems(step, board.toolchain))))
    flasher = board.flasher
    of_flasher = missing_program(flasher.command[0], flasher.package) if flasher else ()
    return Readiness(board, tuple(builds), _emulator_problems(board), tuple(of_flasher))


def _emulator_problems(board: Board) -> Problems:
    emulator = board.emulator
    if emulator is None or emulator.kind is EmulatorKind.NATIVE:
        return ()
    if emulator.kind is EmulatorKind.QEMU:
        return tuple(missing_program(str(emulator.program), emulator.package))
    try:
        tool_path(Tool.AVR_RUNNER)
    except MissingToolError as error:
        return (error,)
    return ()
