"""Command lines of `tvmc micro`: a project's folder, an archive, a platform, project options."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.choice import check_choice
from microtir.errors import UsageError

if TYPE_CHECKING:
    from microtir.ir_module import ModelInfo

ProjectOption = Annotated[
    list[str] | None,
    typer.Option(
        "--project-option",
        metavar="OPTION=VALUE",
        help="As tvmc has it, for DIR ARCHIVE PLATFORM without -o: board, project_type, "
        "config_main_stack_size, compile_definitions; more may follow the first.",
    ),
]

ModelFormat = Annotated[
    str,
    typer.Option("--model-format", metavar="tflite", help="As tvmc has it: the model's format."),
]
InputShapes = Annotated[
    str | None,
    typer.Option(
        "--input-shapes",
        metavar="NAME:[N,…],…",
        help="As tvmc has it: shapes of inputs, which must be those of the model.",
    ),
]
TFLITE = "tflite"
_SHAPE = re.compile(r"([^:,\[\]]+(?::\d+)?):\[([0-9, ]*)\](?:,|$)")

# Platforms of tvmc, and the type of project that each stands for.
PLATFORMS: Mapping[str, str] = MappingProxyType(
    {"zephyr": "zephyr", "arduino": "arduino", "crt": "baremetal"}
)
# Its project types; what is not here has no counterpart.
_TYPES: Mapping[str, bool] = MappingProxyType(  # whether the program serves a computer
    {"host_driven": True, "aot_standalone_demo": False, "example_project": False}
)
_BOARDS: Mapping[str, str] = MappingProxyType(
    {
        "nrf5340dk_nrf5340_cpuapp": "nrf5340dk",
        "qemu_riscv32": "riscv32",
        "rpipico": "rpi_pico",
    }
)
_OPTIONS = ("board", "project_type", "config_main_stack_size", "compile_definitions")
_WHERE = "--project-option"


@dataclass(frozen=True, slots=True)
class ProjectRequest:
    """What a command line of `tvmc micro create-project` asks for."""

    folder: Path
    archive: str
    project_type: str
    board: str
    is_server: bool
    stack: int | None
    definitions: tuple[str, ...]


def project_request(words: Sequence[str], options: Sequence[str]) -> ProjectRequest:
    """The project that positional words and options of tvmc stand for.

    Raises:
        UsageError: a word is missing, or an option has no counterpart.
    """
    names = [word for word in words if "=" not in word]
    if len(names) != 3:
        raise UsageError(
            "there is no folder to write to",
            where="microtir micro create-project",
            legal="MODEL … -o DIR --board BOARD; or DIR ARCHIVE PLATFORM --project-option …",
            fix="add -o DIR",
        )
    folder, archive, platform = names
    check_choice("platform", platform, PLATFORMS, "microtir micro create-project")
    values = _values([*options, *(word for word in words if "=" in word)])
    board = values.get("board", "host" if platform == "crt" else "")
    if not board:
        raise UsageError(f"'{platform}' needs a board", where=_WHERE, fix="add board=BOARD")
    kind = values.get("project_type", "aot_standalone_demo")
    check_choice("project_type", kind, _TYPES, _WHERE)
    stack = values.get("config_main_stack_size")
    if stack is not None and not stack.isdecimal():
        raise UsageError(
            f"config_main_stack_size got '{stack}'", where=_WHERE, legal="a number of bytes"
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


def port_option(options: Sequence[str] | None) -> str | None:
    """The serial port among options of tvmc for a run; UsageError if there is another one."""
    return _values(options or (), ("port",)).get("port")


def _values(options: Sequence[str], known: Sequence[str] = _OPTIONS) -> dict[str, str]:
    values: dict[str, str] = {}
    for option in options:
        name, equals, value = option.partition("=")
        check_choice("project option", name, known, _WHERE)
        if not equals or name in values:
            problem = "is given twice" if name in values else "has no value"
            raise UsageError(f"'{name}' {problem}", where=_WHERE, fix=f"write {name}=VALUE once")
        values[name] = value.removeprefix("-D") if name == "compile_definitions" else value
    return values


def check_input_shapes(text: str | None, model: ModelInfo) -> None:
    """Refuse shapes that are not the model's: its file fixes them.

    Raises:
        UsageError: a malformed text, an input that does not exist, or another shape.
    """
    if text is None:
        return
    shapes = {port.name: list(port.type.shape) for port in model.inputs}
    legal = ",".join(f"{name}:{shape}" for name, shape in shapes.items()).replace(" ", "")
    given = _SHAPE.findall(text)
    if "".join(match.group() for match in _SHAPE.finditer(text)) != text:
        raise UsageError(f"cannot read '{text}'", where="--input-shapes", legal=legal)
    for name, extents in given:
        if shapes.get(name) != [int(extent) for extent in extents.split(",") if extent.strip()]:
            what = f"has the shape {shapes[name]}" if name in shapes else "is no input of the model"
            raise UsageError(
                f"'{name}' {what}",
                where="--input-shapes",
                legal=legal,
                fix="convert the model anew with the shape that you want",
            )


def check_platform(words: Sequence[str], project_type: str) -> tuple[str, ...]:
    """Arguments of a build without tvmc's word for the platform, which a project knows.

    Raises:
        UsageError: the project is of another type.
    """
    if not words or words[0] not in PLATFORMS:
        return tuple(words)
    if PLATFORMS[words[0]] != project_type:
        raise UsageError(
            f"the project is of type '{project_type}', not '{PLATFORMS[words[0]]}'",
            where=f"microtir micro … {words[0]}",
            fix="leave the platform out: a project knows its own",
        )
    return tuple(words[1:])
