"""Finds out which projects can be built with what is on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from microtir.boards.board import Board, ProjectType, Toolchain
from microtir.boards.errors import MissingToolError
from microtir.boards.toolchain import missing_program, missing_requirements
from microtir.projects.template import BuildStep, ProjectTemplates


def check_step(step: BuildStep, toolchain: Toolchain, arguments: Sequence[str] = ()) -> None:
    """Refuse to go on without what a step needs.

    Args:
        step: to be taken.
        toolchain: of the board.
        arguments: more of them for the step's command.

    Raises:
        MissingToolError: names what is missing, and the command that gets it.
    """
    for problem in step_problems(step, toolchain, arguments):
        raise problem


def step_problems(
    step: BuildStep, toolchain: Toolchain, arguments: Sequence[str] = ()
) -> Iterator[MissingToolError]:
    """Yield everything that a step needs and that is missing; see `check_step`."""
    if step.framework is not None and not step.framework.is_here(arguments):
        yield step.framework.missing()
    yield from missing_requirements(None if step.own_compiler else toolchain, step.requires)
    if all(requirement.program != step.command[0] for requirement in step.requires):
        yield from missing_program(step.command[0], None, step.note)


@dataclass(frozen=True, slots=True)
class ProjectTypeChoice:
    """The type of project that is made where none was asked for, and why.

    Args:
        missing: why types that come before it were passed by, by type.
    """

    type: ProjectType
    missing: tuple[tuple[ProjectType, MissingToolError], ...]


def default_type(board: Board) -> ProjectTypeChoice:
    """Return the first of the board's types that can be built here; else its first one."""
    missing: list[tuple[ProjectType, MissingToolError]] = []
    files = ProjectTemplates(None, board.folder)
    for support in board.projects:
        step = files.manifest(support.type).build_for(support)
        try:
            if step is not None:
                check_step(step, board.toolchain)
            return ProjectTypeChoice(support.type, tuple(missing))
        except MissingToolError as error:
            missing.append((support.type, error))
    return ProjectTypeChoice(board.projects[0].type, ())
