"""Reads command lines of `tvmc micro`: folder, archive, platform, project options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.choice import check_choice
from microtir.cli.output import write, write_table
from microtir.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from microtir.projects import Project

_WHERE = "--project-option"
_CREATE = "microtir micro create-project"

# Platforms of tvmc, and the type of project that each stands for.
PLATFORMS: Mapping[str, str] = MappingProxyType(
    {"zephyr": "zephyr", "arduino": "arduino", "crt": "baremetal"}
)
# Its project types; what is not here has no counterpart.
_TYPES: Mapping[str, bool] = MappingProxyType(  # whether the program serves a computer
    {
        "host_driven": True,
        "aot_standalone_demo": False,
        "aot_demo": False,
        "example_project": False,
    }
)
_BOARDS: Mapping[str, str] = MappingProxyType(
    {
        "nrf5340dk_nrf5340_cpuapp": "nrf5340dk",
        "qemu_riscv32": "riscv32",
        "rpipico": "rpi_pico",
    }
)
_BOARD, _PORT = "board", "port"
_HELP: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        _BOARD: ("BOARD", "the board; a project that there is knows its own"),
        "project_type": (
            "|".join(_TYPES),
            "whether it serves a computer",
        ),
        "config_main_stack_size": ("BYTES", "bytes for the stack"),
        "compile_definitions": ("-DNAME=VALUE …", "macros for the compiler"),
        _PORT: ("PORT", "serial port of the board"),
    }
)
CREATE_OPTIONS = (_BOARD, "project_type", "config_main_stack_size", "compile_definitions")
BUILD_OPTIONS = (_BOARD,)
SERIAL_OPTIONS = (_BOARD, _PORT)
# Older names of options, and options of microTVM's templates that have no counterpart.
_ALIASES: Mapping[str, str] = MappingProxyType({"zephyr_board": _BOARD, "arduino_board": _BOARD})
_PROBE = "flash the program with the tool of your debug probe, which has this option"
_INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        "verbose": "leave it out, because failed builds show all output",
        "warning_as_error": "leave it out, and add CFLAGS=-Werror to a build",
        "west_cmd": "put the tool into a folder of PATH",
        "arduino_cli_cmd": "put the tool into a folder of PATH",
        "zephyr_base": "set the environment variable ZEPHYR_BASE",
        "cmsis_path": "name the folder where the model is compiled: --external cmsis-nn=FOLDER",
        "extra_files_tar": "copy the files into the project, or use -o DIR --template-dir",
        "gdbserver_port": _PROBE,
        "nrfjprog_snr": _PROBE,
        "openocd_serial": _PROBE,
        "serial_number": _PROBE,
        "use_fvp": "leave it out; `microtir micro run` uses the board's emulator",
        "workspace_size_bytes": "leave it out, because memory is planned at compilation",
    }
)

ProjectOption = Annotated[
    list[str] | None,
    typer.Option(
        _WHERE,
        metavar="OPTION=VALUE",
        help="Options of tvmc, used with the arguments DIR ARCHIVE PLATFORM and without -o: "
        "board, project_type, config_main_stack_size, compile_definitions. Several OPTION=VALUE "
        "may follow.",
    ),
]
ProjectFacts = Annotated[
    list[str] | None,
    typer.Option(
        _WHERE,
        metavar="OPTION=VALUE",
        help="Options of tvmc: board=BOARD must name the board of the project, and port=PORT "
        "names the serial port for flashing.",
    ),
]


def list_options(names: Sequence[str]) -> object:
    """Return a flag that lists project options of a verb, and ends the program."""
    return typer.Option(
        "--list-options",
        help="Lists the project options, as for tvmc.",
        is_eager=True,
        callback=_lister(names),
    )


def _lister(names: Sequence[str]) -> Callable[[bool], None]:
    def show(wanted: bool) -> None:
        if not wanted:
            return
        write_table(("option", "value", "meaning"), [(name, *_HELP[name]) for name in names])
        if names == CREATE_OPTIONS:
            _write_boards()
        raise typer.Exit(ExitCode.DONE)

    return show


def _write_boards() -> None:
    from microtir.boards import all_boards

    boards = all_boards()
    for platform, kind in PLATFORMS.items():
        names = [b.name for b in boards if kind in {s.type.value for s in b.projects}]
        write(f"\nboards of {platform}: {', '.join(names)}")


@dataclass(frozen=True, slots=True)
class ProjectRequest:
    """The project that a command line of `tvmc micro create-project` asks for."""

    folder: Path
    archive: str
    project_type: str
    board: str
    is_server: bool
    stack: int | None
    definitions: tuple[str, ...]


def project_request(words: Sequence[str], options: Sequence[str]) -> ProjectRequest:
    """Return the project that positional words and options of tvmc stand for.

    Raises:
        UsageError: a word is missing, or an option has no counterpart.
    """
    names = [word for word in words if "=" not in word]
    if len(names) != 3:
        raise UsageError(
            "the output folder is missing",
            where=_CREATE,
            legal="MODEL … -o DIR --board BOARD; or DIR ARCHIVE PLATFORM --project-option …",
            fix="add -o DIR",
        )
    folder, archive, platform = names
    _check_platform_name(platform)
    values = _values([*options, *(word for word in words if "=" in word)], CREATE_OPTIONS)
    board = values.get(_BOARD, "host" if platform == "crt" else "")
    if not board:
        raise UsageError(f"'{platform}' needs a board", where=_WHERE, fix="add board=BOARD")
    kind = values.get("project_type", "aot_standalone_demo")
    check_choice("project_type", kind, _TYPES, _WHERE)
    stack = values.get("config_main_stack_size")
    if stack is not None and not stack.isdecimal():
        raise UsageError(
            f"config_main_stack_size is '{stack}'", where=_WHERE, legal="a number of bytes"
        )
    return ProjectRequest(
        folder=Path(folder),
        archive=archive,
        project_type=PLATFORMS[platform],
        board=_BOARDS.get(board, board),
        is_server=_TYPES[kind] or platform == "crt",
        stack=None if stack is None else int(stack),
        definitions=tuple(values.get("compile_definitions", "").split()),
    )


def _check_platform_name(platform: str) -> None:
    if platform == "template":
        raise UsageError(
            "microtir does not have tvmc's platform 'template', because it writes projects "
            "without a template server",
            where=_CREATE,
            legal=", ".join(PLATFORMS),
            fix="use MODEL -o DIR --board BOARD --template-dir FOLDER",
        )
    check_choice("platform", platform, PLATFORMS, _CREATE)


def serial_port(options: Sequence[str] | None, project: Project | None) -> str | None:
    """Return the serial port among options of tvmc, whose board must be that of the project.

    Raises:
        UsageError: another option, or another board.
    """
    values = _values(options or (), SERIAL_OPTIONS)
    if project is not None:
        _check_board(values, project)
    return values.get(_PORT)


def build_arguments(
    words: Sequence[str], options: Sequence[str], project: Project
) -> tuple[str, ...]:
    """Return arguments of a build without tvmc's word for the platform and its project options.

    Raises:
        UsageError: the project is of another type or for another board, or an option has no
            counterpart.
    """
    known = {*_HELP, *_ALIASES, *_INSTEAD}
    own = [word for word in words if word.partition("=")[0] in known]
    _check_board(_values([*options, *own], BUILD_OPTIONS), project)
    return check_platform([word for word in words if word not in own], project.type.value)


def _check_board(values: Mapping[str, str], project: Project) -> None:
    named = values.get(_BOARD, project.board.name)
    if _BOARDS.get(named, named) != project.board.name:
        raise UsageError(
            f"the project is for '{project.board.name}', not '{named}'",
            where=_WHERE,
            fix="leave out the board, because the project already states it",
        )


def _values(options: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for option in options:
        key, equals, value = option.partition("=")
        name = _ALIASES.get(key, key)
        if name in _INSTEAD:
            raise UsageError(
                f"microtir does not have tvmc's project option '{name}'",
                where=_WHERE,
                fix=_INSTEAD[name],
            )
        check_choice("project option", name, known, _WHERE)
        if not equals or name in values:
            problem = "is given twice" if name in values else "has no value"
            raise UsageError(f"'{name}' {problem}", where=_WHERE, fix=f"write {name}=VALUE once")
        values[name] = value.removeprefix("-D") if name == "compile_definitions" else value
    return values


def check_platform(words: Sequence[str], project_type: str) -> tuple[str, ...]:
    """Return arguments of a build without tvmc's word for the platform, which a project knows.

    Raises:
        UsageError: the project is of another type.
    """
    if not words or words[0] not in PLATFORMS:
        return tuple(words)
    if PLATFORMS[words[0]] != project_type:
        raise UsageError(
            f"the project is of type '{project_type}', not '{PLATFORMS[words[0]]}'",
            where=f"microtir micro … {words[0]}",
            fix="leave out the platform, because the project already states it",
        )
    return tuple(words[1:])
