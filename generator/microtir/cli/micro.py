"""`microtir micro create-project | build | flash | run` handle projects for boards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli import project_options, projects
from microtir.cli.board_options import Timeout
from microtir.cli.model import ModelOrArchive
from microtir.cli.output import write
from microtir.cli.progress import Progress
from microtir.cli.quantise_options import with_quantiser
from microtir.cli.quantiser import Quantiser
from microtir.config import CompilationConfig
from microtir.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from microtir.projects import Project
    from microtir.quantise.summary import Summary

ProjectBoard = Annotated[
    str | None,
    typer.Option(
        "--board",
        metavar="BOARD",
        help="A board that `microtir boards` lists. It sets the target unless --target does.",
        show_default=False,
    ),
]
Folder = Annotated[
    Path,
    typer.Argument(metavar="DIR", help="Folder of the project.", show_default=False),
]
Platform = Annotated[
    str | None,
    typer.Argument(metavar="PLATFORM", help="Accepted for tvmc. It has no effect."),
]
SerialPort = Annotated[
    str | None,
    typer.Option("--port", metavar="PORT", help="The serial port of the board."),
]


@with_quantiser
def create(
    model: ModelOrArchive,
    config: CompilationConfig,
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL", help="More models. All models share one workspace."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder of the project.", show_default=False
        ),
    ] = None,
    board: ProjectBoard = None,
    project_type: projects.ProjectTypeName = None,
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Deletes an existing folder first.")
    ] = False,
    template_dir: projects.TemplateDir = None,
    golden: projects.GoldenSamples = None,
    samples: projects.SampleCount = projects.DEFAULT_SAMPLES,
    stack: Annotated[
        int | None,
        typer.Option(
            "--stack", metavar="BYTES", help="Bytes of the stack. Default: the stack of the board."
        ),
    ] = None,
    together: projects.TogetherNames = None,
    debug_checks: projects.DebugChecks = False,
    quantiser: Quantiser | None = None,
    project_option: project_options.ProjectOption = None,
    listing: Annotated[bool, project_options.list_options(project_options.CREATE_OPTIONS)] = False,
) -> ExitCode:
    """Writes a project with models, an application that runs them on samples, and a README."""
    assert not listing  # the option ends the program
    models = [model, *(more or [])]
    if output is None:
        projects.print_project(*_as_tvmc(models, config, project_option or [], force=force))
        return ExitCode.DONE
    _check_own_form(board, project_option)
    assert board is not None
    if golden is not None and len(models) > 1:
        raise UsageError("--golden can be used with only one model", where="--golden")
    project, price = projects.create_project(
        models, config, output, board, project_type,
        force=force,
        template_dir=template_dir,
        golden=golden,
        samples=samples,
        stack=stack,
        together=together or (),
        debug_checks=debug_checks,
        quantiser=quantiser,
    )  # fmt: skip
    projects.print_project(project, price)
    return ExitCode.DONE


def _as_tvmc(
    words: list[str], config: CompilationConfig, options: list[str], *, force: bool
) -> tuple[Project, Summary | None]:
    """Return the project that tvmc's command line asks for: DIR ARCHIVE PLATFORM, options."""
    request = project_options.project_request(words, options)
    return projects.create_project(
        [request.archive],
        config,
        request.folder,
        request.board,
        request.project_type,
        force=force,
        stack=request.stack,
        definitions=request.definitions,
        is_server=request.is_server,
    )


def _check_own_form(board: str | None, options: list[str] | None) -> None:
    if board is None:
        raise UsageError(
            "a project needs a board",
            where="microtir micro create-project",
            fix="add --board BOARD",
        )
    if options:
        raise UsageError(
            "--project-option needs the arguments DIR ARCHIVE PLATFORM, and cannot be used with -o",
            where="microtir micro create-project",
            fix="use the options of this command: --project-type, --stack",
        )


def build_project(
    folder: Folder,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ARG", help="Additional arguments for the build command, such as CFLAGS=-O3."
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            "-f",
            help="Accepted for tvmc. It has no effect: an existing build is always replaced.",
        ),
    ] = False,
    project_option: project_options.ProjectFacts = None,
    listing: Annotated[bool, project_options.list_options(project_options.BUILD_OPTIONS)] = False,
) -> ExitCode:
    """Builds a project with the board's own tools."""
    assert not listing
    del force  # every build renews what changed
    from microtir.projects import load_project
    from microtir.projects.program_size import program_size

    project = load_project(folder)
    own_options = project_options.build_arguments(arguments or (), project_option or (), project)
    with Progress() as progress:
        progress.show(f"building {folder}")
        program = project.build(own_options)
    size = program_size(program)
    write(f"{program}: {size or f'{program.stat().st_size:,} bytes'}")
    return ExitCode.DONE


def flash(
    folder: Folder,
    platform: Platform = None,
    port: SerialPort = None,
    project_option: project_options.ProjectFacts = None,
    listing: Annotated[bool, project_options.list_options(project_options.SERIAL_OPTIONS)] = False,
) -> ExitCode:
    """Writes a built program to its board."""
    assert not listing
    from microtir.projects import load_project

    project = load_project(folder)
    project_options.check_platform([platform] if platform else [], project.type.value)
    port = project_options.serial_port(project_option, project) or port
    if not project.flash_command and project.board.emulator is not None:
        write(
            f"nothing to flash for {project.board.title}: microtir micro run {folder} "
            "runs the program here"
        )
        return ExitCode.DONE
    with Progress() as progress:
        progress.show(f"writing to {project.board.title}")
        project.flash(port)
    write(f"{project.program} is on the board")
    return ExitCode.DONE


def run(folder: Folder, port: SerialPort = None, timeout: Timeout = 120.0) -> ExitCode:
    """Runs a built project and prints its output.

    The project runs in the emulator, or with --port on the board, which you then reset. Exit
    status 1 means that an output differs from the expected output.
    """
    from microtir.device.emulate import RunResult, check_result
    from microtir.device.printed import status_of
    from microtir.projects import load_project
    from microtir.projects.console import read_console
    from microtir.projects.faults import fault_places

    project = load_project(folder)
    if port is not None:
        output = read_console(project, port, timeout)
        result = RunResult(status_of(output), output)
    else:
        with Progress() as progress:
            progress.show(f"running on {project.board.title}")
            result = project.run(timeout)
    write(result.output.rstrip("\n"))
    for line in fault_places(project, result.output):
        write(line)
    return ExitCode.DONE if check_result(result, str(folder)) else ExitCode.ANSWER_IS_NO
