"""Generates a project: makes a folder of models, a board and a project type."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from microtir.artifact import SBOM_FILE, Artifact, sbom_text
from microtir.boards.board import Board, Console, EmulatorKind, ProjectSupport, ProjectType
from microtir.boards.errors import ProjectError
from microtir.boards.search import load_board
from microtir.errors import Fix, nearest
from microtir.projects.capacity import check_fit, demand, project_footprint
from microtir.projects.model_files import check_headers, model_files, parameter_files
from microtir.projects.models import describe_models
from microtir.projects.options import ProjectOptions
from microtir.projects.project import (
    BOARD_FOLDER,
    PROJECT_FILE,
    Project,
    ProjectLayer,
    ProjectModel,
    project_text,
)
from microtir.projects.template import ProjectTemplates, Template
from microtir.projects.values import build_values, package_name, project_values
from microtir.support.files import write_folder
from microtir.support.template_files import Part

_CORTEX_M = "cortex_m"  # the part with the vectors and the first instructions


def generate(
    artifacts: Artifact | Sequence[Artifact],
    board: str | Board,
    project_type: ProjectType | str,
    folder: str | os.PathLike[str],
    *,
    force: bool = False,
    options: ProjectOptions | None = None,
    board_dirs: Sequence[str | os.PathLike[str]] = (),
    template_dir: str | os.PathLike[str] | None = None,
) -> Project:
    """Write a project that builds with the board's own tools and needs no Python.

    Args:
        artifacts: compiled models; several share one workspace, and none makes the empty program
            that others are compared with.
        board: its name, or a Board.
        project_type: what the project is for.
        folder: must not exist, or be empty, unless `force` is given.
        force: replace the folder, and everything in it is lost.
        options: samples, console, stack and more.
        board_dirs: folders of boards to look in before those of microtir.
        template_dir: files in it replace those of `templates/projects` of the same path.

    Returns:
        The project, ready to be built.

    Raises:
        BoardError: the board is unknown, or has no project of this type.
        ProjectError: an option or an artifact does not fit.
        ModelTooLargeError: with the table of what needs how much.
        TemplateFileError: a template is broken, or its file would lie outside the folder.
        OutputError: the folder exists, or cannot be written. Nothing was changed then.
    """
    chosen = load_board(board, board_dirs) if isinstance(board, str) else board
    support = chosen.support(_project_type(project_type))
    options = options or ProjectOptions()
    built = (artifacts,) if isinstance(artifacts, Artifact) else tuple(artifacts)
    models = describe_models(built, options)
    stack = options.stack or support.stack
    check_fit(chosen, demand(models, project_footprint(models, built, chosen, stack)))
    files = ProjectTemplates(template_dir, chosen.folder)
    template = files.manifest(support.type).named(package_name(models.names))
    project = Project(
        folder=Path(folder),
        type=support.type,
        board=chosen,
        models=tuple(map(_project_model, built)),
        program=_program(template, chosen),
        build_step=template.build_for(support),
        flash_step=template.flash,
    )
    sources = model_files(built, template.folders) | parameter_files(built, template.folders, files)
    values = project_values(project, support, models, options, stack)
    targets = files.targets(_parts(template, support, options), values)
    check_headers(models.names, list(targets), "project.generate(artifact)")
    values |= build_values(project, template, [*targets, *sources])
    contents = sources | files.render(targets, values) | _data_files(project)
    write_folder(project.folder, contents | _bill(contents, models.names, built), force=force)
    return project


def _bill(
    files: dict[str, bytes], names: Sequence[str], artifacts: Sequence[Artifact]
) -> dict[str, bytes]:
    return {SBOM_FILE: sbom_text(package_name(names), "", files, artifacts).encode()}


def _data_files(project: Project) -> dict[str, bytes]:
    """Return what microtir itself reads when the project is opened again."""
    file = project.board.file
    return {
        PROJECT_FILE: project_text(project).encode(),
        f"{BOARD_FOLDER}/{project.board.name}/{file.name}": file.read_bytes(),
    }


def _project_type(value: ProjectType | str) -> ProjectType:
    if isinstance(value, ProjectType):
        return value
    names = [kind.value for kind in ProjectType]
    if value not in names:
        raise ProjectError(
            f"'{value}' is not a project type",
            where="project.generate(project_type)",
            legal=", ".join(names),
            fix=nearest(value, names) or None,
        )
    return ProjectType(value)


def _project_model(artifact: Artifact) -> ProjectModel:
    facts = artifact.metadata
    layers = (ProjectLayer(row.name, row.operator, row.function, row.macs) for row in facts.layers)
    return ProjectModel(facts.module_name, f"{facts.module_name}_run", tuple(layers))


def _parts(template: Template, support: ProjectSupport, options: ProjectOptions) -> list[Part]:
    """Return all folders of templates that the project is made of, in order of precedence."""
    _check_options(template, options)
    return [
        *template.parts,
        *_board_parts(support, options),
        *_server_parts(support, options),
        *_check_parts(support, options),
    ]


def _check_options(template: Template, options: ProjectOptions) -> None:
    """Refuse an option that projects of this type would not heed."""
    default = ProjectOptions()
    for name in ("definitions", "optimization"):
        value = getattr(options, name)
        if tuple(value) != tuple(getattr(default, name)) and name not in template.honours:
            raise ProjectError(
                f"the value is {value!r}, but projects of type '{template.type.value}' do not "
                "accept this option",
                where=f"options.{name}",
                fix="leave out the option, and use the setting of your framework "
                f"({template.settings})",
            )


def _program(template: Template, board: Board) -> str | None:
    """Return what a build makes: for other boards than the host perhaps only the library."""
    is_host = board.emulator is not None and board.emulator.kind is EmulatorKind.NATIVE
    return template.program if is_host or template.library is None else template.library


def _board_parts(support: ProjectSupport, options: ProjectOptions) -> list[Part]:
    """Return the parts that the board asks for, and the driver of the console."""
    console = options.console or support.consoles[0]
    if console not in support.consoles:
        raise ProjectError(
            f"the board has no console '{console.value}'",
            where="options.console",
            legal=", ".join(known.value for known in support.consoles),
        )
    drivers = {Console.UART: support.uart, Console.SEMIHOSTING: "semihosting", Console.STDIO: None}
    driver = drivers[console]
    names = [*support.parts, *([driver] if driver else [])]
    return [Part(f"{support.type.value}/{name}", ".") for name in names]


def _server_parts(support: ProjectSupport, options: ProjectOptions) -> list[Part]:
    """Return what makes the program answer a computer instead of running samples."""
    if not options.server:
        return []
    console = options.console or support.consoles[0]
    if support.type is not ProjectType.BAREMETAL or console is Console.SEMIHOSTING:
        raise ProjectError(
            f"a project of type '{support.type.value}' on {console.value} cannot be a server",
            where="options.server",
            legal="a bare-metal project with a serial port",
            fix=Fix(
                "use project type 'baremetal' and a board with a serial port, or 'host'",
                "use the platform crt, or --project-type baremetal with the board 'host' or a "
                "board with a serial port",
            ),
        )
    return [Part("server", "src"), Part(f"{support.type.value}/server", ".")]


def _check_parts(support: ProjectSupport, options: ProjectOptions) -> list[Part]:
    """Return what watches memory and describes faults."""
    if not options.debug_checks:
        return []
    is_cortex_m = support.type is ProjectType.BAREMETAL and _CORTEX_M in support.parts
    if not is_cortex_m or options.server:
        told = "a program that serves" if options.server else "this board's start-up code"
        if support.type is not ProjectType.BAREMETAL:
            told = f"a project of type '{support.type.value}'"
        raise ProjectError(
            f"{told} cannot have debug checks, which print and need the vector table of a Cortex-M",
            where="options.debug_checks",
            legal="a bare-metal project for a Cortex-M that runs samples",
            fix=Fix(
                "use project type 'baremetal' and a board such as 'mps2_an386'",
                "add --project-type baremetal, and use a board such as mps2_an386",
            ),
        )
    return [Part(f"{support.type.value}/debug_checks", ".")]
