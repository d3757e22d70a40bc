"""Builds and runs a generated project, and writes it to a board."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from microtir.artifact import (
    METADATA_FILE,
    GraphNode,
    Metadata,
    graph_file,
    nodes_of,
    read_metadata,
)
from microtir.boards.board import Board, ProjectType, read_board
from microtir.boards.errors import BuildError, ProjectError
from microtir.boards.toolchain import require_program
from microtir.device.emulate import DEFAULT_TIMEOUT, RunResult, emulator_command, run_program
from microtir.device.link import DEFAULT_BAUD, Link, ProcessLink, SerialLink, find_port
from microtir.device.printed import is_complete, status_of
from microtir.device.session import RUN_TIMEOUT, DeviceSession
from microtir.errors import Fix, MicrotirError
from microtir.projects.build import run_build
from microtir.projects.buildable import check_step
from microtir.projects.template import BuildStep
from microtir.support.reading import NATURAL, WrongDataError, check, parse_json
from microtir.support.shown import shown
from microtir.support.texts import IDENTIFIER, MODULE_NAME, PATH, TEXT, WORD

PROJECT_FILE = "project.json"
BOARD_FOLDER = "board_data"
FORMAT_VERSION = 1

# Programs of an operating system go on when the application is done: nothing ends them.
_ENDLESS = frozenset({ProjectType.ZEPHYR, ProjectType.ESP_IDF})


@dataclass(frozen=True, slots=True)
class ProjectLayer:
    """A layer of a model: its name in the model, its operator, the C function."""

    name: Annotated[str, TEXT]
    operator: Annotated[str, TEXT]
    function: Annotated[str, IDENTIFIER]
    macs: Annotated[int, NATURAL]


@dataclass(frozen=True, slots=True)
class ProjectModel:
    """A model of a project: `run` is the C function that the application calls."""

    name: Annotated[str, MODULE_NAME]
    run: Annotated[str, IDENTIFIER]
    layers: tuple[ProjectLayer, ...]


@dataclass(frozen=True, slots=True)
class _ProjectFile:
    """The content of `project.json`, in the order of its text."""

    format: int
    type: Annotated[str, WORD]
    board: Annotated[str, IDENTIFIER]
    program: Annotated[str, PATH] | None
    build: BuildStep | None
    flash: BuildStep | None
    models: tuple[ProjectModel, ...]


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with everything that is needed to build and run models on a board.

    Args:
        folder: of the project.
        type: which framework it is for.
        board: as it was when the project was generated.
        models: by module name, in the order of generation.
        program: what a build makes, below the folder; None if it makes no program.
        build_step, flash_step: the project type's commands, if it has any.
    """

    folder: Path
    type: ProjectType
    board: Board
    models: tuple[ProjectModel, ...]
    program: str | None
    build_step: BuildStep | None
    flash_step: BuildStep | None

    @property
    def program_path(self) -> Path:
        """Return the program's file, built or not; ProjectError if this type makes none."""
        if self.program is None:
            raise ProjectError(
                f"a project of type '{self.type.value}' does not build a program by itself",
                where=str(self.folder),
                fix="add the project to a project of the framework",
            )
        return self.folder / self.program

    def build(self, arguments: Sequence[str] = ()) -> Path:
        """Build the program with the board's own tools.

        Args:
            arguments: more of them for the build command, e.g. ``["CFLAGS=-O3"]``.

        Returns:
            The program's file.

        Raises:
            MissingToolError: a tool is not on this machine; says which package to install.
            BuildError: the compiler's own message, and the folder to look in.
            ProjectError: a project of this type is not built by itself.
        """
        program = self.program_path
        if self.build_step is None:
            raise ProjectError(f"there is no command to build '{self.type.value}'",
                               where=str(self.folder))  # fmt: skip
        step = self.build_step
        _check_folder(self.folder.resolve(), step)
        check_step(step, self.board.toolchain, arguments)
        try:
            run_build([*self._filled(step.command), *arguments], self.folder, self.metadata)
            if step.then:
                run_build(self._filled(step.then), self.folder, self.metadata)
        except BuildError as error:
            if step.framework is not None and step.framework.explains(error.what):
                raise step.framework.incomplete(error.what) from error
            raise
        return program

    def run(self, timeout: float = DEFAULT_TIMEOUT) -> RunResult:
        """Run the program that was built in the board's emulator.

        One that goes on after its last line, as an operating system does, is ended then, and its
        status is what its lines say.

        Raises:
            ProjectError: it was not built.
            BoardError: the board has no emulator.
            MissingToolError: the emulator is not on this machine.
            EmulatorError: the program did not end in `timeout` seconds; shows its last output.
        """
        program = self.built_program()
        self._check_is_program(program)
        command = emulator_command(self.board, program)
        if self.type not in _ENDLESS:
            return run_program(command, timeout)
        names = [model.name for model in self.models]
        result = run_program(command, timeout, lambda text: is_complete(text, names))
        is_done = is_complete(result.output, names)
        return RunResult(status_of(result.output), result.output) if is_done else result

    def transport(self, port: str | None = None, run_timeout: float = RUN_TIMEOUT) -> DeviceSession:
        """Talk to the program, which was generated with `ProjectOptions(server=True)`.

        Args:
            port: serial port of the real board; without it the program is started in the
                emulator, or the board is looked for among the serial ports of this machine.
            run_timeout: seconds that one inference may take.

        Raises:
            ProjectError: it was not built, or there is no such serial port.
            BoardError: the board has no emulator, and is not to be found at a serial port.
            MissingToolError: the emulator or pyserial is not on this machine.
            EmulatorError: nobody answers.
        """
        program = self.built_program()
        serial = self.board.serial
        if port is None and self.board.emulator is None and serial and serial.vid is not None:
            port = find_port(serial.vid, serial.pid)
        if port is not None:
            line: Link = SerialLink(port, serial.baud if serial else DEFAULT_BAUD)
        else:
            line = ProcessLink(emulator_command(self.board, program))
        return DeviceSession(line, run_timeout, self.metadata())

    @property
    def flash_command(self) -> Sequence[str]:
        """Return the command that writes the program to the board; none if there is no such."""
        if self.flash_step is not None:
            return self.flash_step.command
        return self.board.flasher.command if self.board.flasher is not None else ()

    def flash(self, port: str | None = None) -> None:
        """Write the program that was built to the board.

        Args:
            port: the serial port, for boards that are written through one.

        Raises:
            ProjectError: it was not built, there is no command for it, or it needs a port.
            MissingToolError: the command is not on this machine.
            BuildError: the command failed; shows what it said.
        """
        program = self.built_program()
        self._check_is_program(program)
        flasher, command = self.board.flasher, self.flash_command
        if not command:
            raise ProjectError(
                f"microtir has no command that flashes a program to '{self.board.name}'",
                where=f"{self.board.file}: flash",
                fix=f"flash {program} with the tool of your debug probe",
            )
        if port is None and any("{port}" in word for word in command):
            raise ProjectError("the board is flashed through a serial port", where="port")
        package = flasher.package if flasher and not self.flash_step else None
        require_program(command[0], package, self.flash_step.note if self.flash_step else None)
        run_build([word.replace("{port}", port or "") for word in self._filled(command)],
                  self.folder)  # fmt: skip

    def nodes(self, name: str) -> tuple[GraphNode, ...]:
        """Return the nodes of a model: those of its graph, else its layers.

        Raises:
            ProjectError: a file is not there, or damaged.
        """
        path = self._metadata_file(name)
        metadata = _read_metadata(path)
        graph = path.with_name(graph_file(metadata))
        try:
            return nodes_of(metadata, graph.read_text("utf-8") if graph.exists() else None)
        except (OSError, ValueError, WrongDataError) as error:
            raise _damaged(error, graph) from None

    def metadata(self) -> tuple[Metadata, ...]:
        """Return the metadata that were generated with the models.

        Raises:
            ProjectError: a file is not there, or damaged.
        """
        return tuple(_read_metadata(self._metadata_file(model.name)) for model in self.models)

    def _metadata_file(self, name: str) -> Path:
        path = next(self.folder.glob(f"**/{name}/{METADATA_FILE}"), None)
        if path is None:
            raise ProjectError(
                f"the project has no {METADATA_FILE} of the model '{name}'",
                where=str(self.folder),
                fix="generate the project again",
            )
        return path

    def built_program(self) -> Path:
        """Return the program's file; ProjectError if it is not there yet."""
        program = self.program_path
        if not program.is_file():
            fix = Fix("build() it", f"build it: microtir micro build {self.folder}")
            raise ProjectError("the project is not built", where=str(program), fix=fix)
        return program

    @property
    def makes_program(self) -> bool:
        """Return whether a build makes a program, and not a library for one of the user's."""
        return self.program is not None and not self.program.endswith(".a")

    def _check_is_program(self, built: Path) -> None:
        if not self.makes_program:
            raise ProjectError(
                f"a project of type '{self.type.value}' builds a library for '{self.board.name}', "
                "and no program",
                where=str(built),
                fix="link the library into your program, or generate a project of another type",
            )

    def _filled(self, command: Sequence[str]) -> list[str]:
        """Return a command with the names that stand for files filled in."""
        return [word.replace("{program}", self.program or "") for word in command]


def _check_folder(folder: Path, step: BuildStep) -> None:
    """Refuse a folder that the tool would take for something else.

    Project files name nothing but what is below them, so that `make` does not mind; CMake writes
    the whole path into its lists, whose items end with a semicolon.
    """
    if step.command[0] in ("cmake", "idf.py") and ";" in str(folder):
        raise ProjectError(
            "CMake cannot build in a folder that has a ';' in its path",
            where=str(folder),
            fix="move the project to another folder",
        )


def project_text(project: Project) -> str:
    """Return the content of `project.json`, without paths of this machine."""
    file = _ProjectFile(
        format=FORMAT_VERSION,
        type=project.type.value,
        board=project.board.name,
        program=project.program,
        build=project.build_step,
        flash=project.flash_step,
        models=project.models,
    )
    return json.dumps(asdict(file), indent=2) + "\n"


def load_project(folder: str | os.PathLike[str]) -> Project:
    """Load the project that `generate` wrote to a folder.

    Raises:
        ProjectError: there is none, or its file is damaged.
        BoardError: the project's copy of the board's file is damaged.
    """
    path = Path(folder) / PROJECT_FILE
    try:
        written = parse_json(path.read_bytes())
        if isinstance(written, dict) and written.get("format") != FORMAT_VERSION:
            raise ProjectError(
                f"the project has format {shown(written.get('format'))} of another microtir",
                where=str(path),
                legal=f"format {FORMAT_VERSION}",
                fix="generate the project again",
            )
        file: _ProjectFile = check(written, _ProjectFile)
        if any(step is not None and not step.command for step in (file.build, file.flash)):
            raise WrongDataError("a step has no command")
        return Project(
            folder=Path(folder),
            type=ProjectType(file.type),
            board=read_board(Path(folder) / BOARD_FOLDER / file.board),
            models=file.models,
            program=file.program,
            build_step=file.build,
            flash_step=file.flash,
        )
    except OSError as error:
        raise ProjectError(
            f"is not a project of microtir: {error.strerror}",
            where=str(path),
            fix="name the folder that a project was generated into",
        ) from None
    except (WrongDataError, ValueError) as error:
        raise _damaged(error, path) from None


def _read_metadata(path: Path) -> Metadata:
    try:
        return read_metadata(path.read_bytes())
    except (OSError, WrongDataError) as error:
        raise _damaged(error, path) from None


def _damaged(error: Exception, path: Path) -> ProjectError:
    problem = error.what if isinstance(error, MicrotirError) else repr(error)
    return ProjectError(
        f"it is damaged: {problem}", where=str(path), fix="generate the project again"
    )
