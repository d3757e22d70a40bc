"""Reads `board.toml`, which describes a board, into checked dataclasses.

A board is data. Everything that this file does not know, a new board cannot ask for; everything
that it knows, a new board gets by writing it down, without any Python.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

from microtir.boards.errors import BoardError
from microtir.config import Target
from microtir.errors import ConfigError, nearest
from microtir.support.texts import COMMAND_WORD, IDENTIFIER, LINE, WORD, WORDS
from microtir.support.toml_table import TomlTable

BOARD_FILE = "board.toml"

DEFAULT_STACK = 4096

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_DEFINITION = re.compile(r"[A-Z][A-Z0-9_]*(=[0-9A-Za-z_]+)?")


class MemoryKind(Enum):
    """A kind of memory, by what a program can do with it."""

    FLASH = "flash"  # keeps its contents; the program cannot write it
    RAM = "ram"


class ProjectType(Enum):
    """A framework that projects are made for; the value is what the command line takes."""

    BAREMETAL = "baremetal"
    ZEPHYR = "zephyr"
    ARDUINO = "arduino"
    CMAKE = "cmake"
    ESP_IDF = "esp-idf"
    PLATFORMIO = "platformio"


class Label(Enum):
    """The extent to which the tests of microtir cover a board, from the most to the least."""

    EXECUTED = "executed"  # built, run in an emulator, outputs compared
    BUILT = "built"  # compiled and linked with the board's own tools
    CHECKED = "checked"  # the generated files obey their formats; nothing was compiled


class EmulatorKind(Enum):
    """A program that runs what was compiled for a board."""

    QEMU = "qemu"
    SIMAVR = "simavr"
    NATIVE = "native"  # the program runs on this machine


class Console(Enum):
    """A place where a program without an operating system prints."""

    UART = "uart"
    SEMIHOSTING = "semihosting"  # through a debugger or an emulator
    STDIO = "stdio"


@dataclass(frozen=True, slots=True)
class BoardMemory:
    """A memory that a linker may place something in.

    Args:
        wait_states: clock cycles that a read takes beyond the first.
        enforced: whether a program that leaves it faults by itself, on the board or the emulator.
    """

    name: str
    kind: MemoryKind
    address: int
    size: int  # bytes
    wait_states: int
    enforced: bool
    note: str | None


@dataclass(frozen=True, slots=True)
class Requirement:
    """A program on the PATH, or a file of the compiler's own, and the Debian package with it."""

    package: Annotated[str, WORDS]
    program: Annotated[str, WORD] | None
    file: Annotated[str, WORD] | None


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler: `prefix` + "gcc", and what it is called with.

    Args:
        flags: for compiling and linking.
        link_flags: for linking only.
        requires: what must be on the machine.
        note: where the tools come from, if they are in no Debian package.
    """

    prefix: str
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    requires: tuple[Requirement, ...]
    note: str | None

    @property
    def compiler(self) -> str:
        return f"{self.prefix}gcc"


@dataclass(frozen=True, slots=True)
class Emulator:
    """The emulator of a board, and how it is called.

    Args:
        program: of QEMU; the others are run by a program of microtir's own.
        machine: the emulator's name for the board or CPU.
        arguments: more of them.
        package: the Debian package to install.
    """

    kind: EmulatorKind
    program: str | None
    machine: str | None
    arguments: tuple[str, ...]
    package: str | None


@dataclass(frozen=True, slots=True)
class Flasher:
    """The command that writes a program to the board; `{program}` stands for its file."""

    command: tuple[str, ...]
    package: str | None


@dataclass(frozen=True, slots=True)
class Serial:
    """The serial port that the board shows to a computer; `vid` and `pid` as USB tells them."""

    baud: int
    vid: int | None
    pid: int | None


@dataclass(frozen=True, slots=True)
class ProjectSupport:
    """The facts that projects of one type need of a board.

    Args:
        parts: folders of the project type's templates that this board needs.
        definitions: macros for the compiler, `NAME` or `NAME=value`.
        uart: the part that drives the board's serial port.
        semihosting: whether a debugger or emulator listens to semihosting calls.
        board: the framework's name of the board. Zephyr's up to 3.6, an Arduino FQBN, an ESP-IDF
            target, a PlatformIO board.
        platform: PlatformIO's name of the family that the board belongs to.
        qualified_board: Zephyr's newest name, with qualifiers, from 3.7 on.
        aliases: names that releases of the framework in between had for it.
        stack: bytes that an application usually gives to its stack here.
    """

    type: ProjectType
    label: Label
    parts: tuple[str, ...]
    definitions: tuple[str, ...]
    uart: str | None
    semihosting: bool
    board: str | None
    platform: str | None
    qualified_board: str | None
    aliases: tuple[str, ...]
    stack: int

    @property
    def consoles(self) -> tuple[Console, ...]:
        """Return where a program can print, the usual place first."""
        consoles = [Console.UART] if self.uart else []
        consoles += [Console.SEMIHOSTING] if self.semihosting else []
        return tuple(consoles) or (Console.STDIO,)


@dataclass(frozen=True, slots=True)
class Board:
    """Everything that microtir knows of a board.

    Args:
        folder: with `board.toml`; files of project templates below it replace the common ones.
        target: what code is generated for.
        clock_hz: of the CPU; 0 where it has no meaning.
        code, data: the memories that program and variables are placed in; None on a host.
        reserve: bytes of `data` that the models must leave to others, such as a radio's stack.
    """

    name: str
    title: str
    folder: Path
    target: Target
    clock_hz: int
    memories: tuple[BoardMemory, ...]
    code: BoardMemory | None
    data: BoardMemory | None
    reserve: int
    toolchain: Toolchain
    emulator: Emulator | None
    flasher: Flasher | None
    serial: Serial | None
    projects: tuple[ProjectSupport, ...]

    @property
    def file(self) -> Path:
        return self.folder / BOARD_FILE

    @property
    def flash_bytes(self) -> int:
        """Return the size of the program's memory, which budgets are about; 0 if that is RAM."""
        is_flash = self.code is not None and self.code.kind is MemoryKind.FLASH
        return self.code.size if self.code is not None and is_flash else 0

    @property
    def usual_stack(self) -> int:
        """Return the bytes of a stack where no project type is chosen yet."""
        return max((support.stack for support in self.projects), default=0)

    def support(self, project_type: ProjectType) -> ProjectSupport:
        """Return what the board says about a project type.

        Raises:
            BoardError: it has none of this type; says which it has.
        """
        for support in self.projects:
            if support.type is project_type:
                return support
        raise BoardError(
            f"the board '{self.name}' has no project of type '{project_type.value}'",
            where=f"{self.file}: projects",
            legal=", ".join(support.type.value for support in self.projects),
        )


def read_board(folder: Path) -> Board:
    """Read `board.toml` of a folder, which has the board's name.

    Raises:
        BoardError: names file and field.
    """
    top = TomlTable.load(folder / BOARD_FILE, BoardError)
    if not _NAME.fullmatch(folder.name):
        raise BoardError(
            f"'{folder.name}' is not a name for a board",
            where=str(folder),
            legal="a lower-case letter, followed by lower-case letters, digits and _",
        )
    memories = _memories(top)
    board = Board(
        name=folder.name,
        title=top.required_text("title", LINE),
        folder=folder,
        target=_target(top),
        clock_hz=top.integer("clock_hz") or 0,
        memories=memories,
        code=_memory(top, "code", memories),
        data=_memory(top, "data", memories),
        reserve=_reserve(top, _memory(top, "data", memories)),
        toolchain=_toolchain(top.required_table("toolchain")),
        emulator=_emulator(top.table("emulator")),
        flasher=_flasher(top.table("flash")),
        serial=_serial(top.table("serial")),
        projects=_projects(top.required_table("projects")),
    )
    top.done()
    return board


def _target(table: TomlTable) -> Target:
    text = table.required_text("target", LINE)
    try:
        return Target(text)
    except ConfigError as error:
        raise table.problem("target", error.what, error.legal) from None


def _memories(top: TomlTable) -> tuple[BoardMemory, ...]:
    memories: list[BoardMemory] = []
    for table in top.tables("memory"):
        memory = BoardMemory(
            name=table.required_text("name", IDENTIFIER),
            kind=table.required_choice("kind", MemoryKind),
            address=table.required_integer("address"),
            size=table.required_integer("size"),
            wait_states=table.integer("wait_states") or 0,
            enforced=table.flag("enforced"),
            note=table.text("note", LINE),
        )
        table.done()
        if memory.size == 0:
            raise table.problem("size", f"the memory '{memory.name}' has no bytes")
        for other in memories:
            if memory.name == other.name:
                raise table.problem("name", f"there are two memories '{memory.name}'")
            if _overlap(memory, other):
                raise table.problem("address", f"'{memory.name}' overlaps '{other.name}'")
        memories.append(memory)
    return tuple(memories)


def _overlap(a: BoardMemory, b: BoardMemory) -> bool:
    """Return whether two memories share addresses; AVR counts flash and RAM from 0 each."""
    shared = a.address < b.address + b.size and b.address < a.address + a.size
    return shared and a.kind is b.kind


def _memory(top: TomlTable, key: str, memories: tuple[BoardMemory, ...]) -> BoardMemory | None:
    """Return the memory that `key` names; it must be there if there are memories."""
    if not memories:
        return None
    name = top.required_text(key, IDENTIFIER)
    for memory in memories:
        if memory.name == name:
            return memory
    names = [memory.name for memory in memories]
    hint = nearest(name, names)
    what = f"there is no memory '{name}'"
    raise top.problem(key, f"{what}: {hint}" if hint else what, ", ".join(names))


def _reserve(top: TomlTable, data: BoardMemory | None) -> int:
    """Return the bytes of the memory for variables that are kept from them."""
    reserve = top.integer("reserve") or 0
    room = data.size if data else 0
    if reserve and reserve >= room:
        raise top.problem("reserve", f"got {reserve}", f"less than the {room} bytes of 'data'")
    return reserve


def _toolchain(table: TomlTable) -> Toolchain:
    result = Toolchain(
        prefix=table.text("prefix", WORD) or "",
        flags=table.texts("flags", WORD),
        link_flags=table.texts("link_flags", WORD),
        requires=tuple(map(read_requirement, table.tables("requires"))),
        note=table.text("note", LINE),
    )
    table.done()
    return result


def read_requirement(table: TomlTable) -> Requirement:
    """Read a table that names a program or a file, and its package."""
    result = Requirement(
        package=table.required_text("package", WORDS),
        program=table.text("program", WORD),
        file=table.text("file", WORD),
    )
    table.done()
    if (result.program is None) == (result.file is None):
        raise table.problem(
            "program", "name a program, or a file of the compiler", "one of the two"
        )
    return result


def _emulator(table: TomlTable | None) -> Emulator | None:
    if table is None:
        return None
    kind = table.required_choice("kind", EmulatorKind)
    result = Emulator(
        kind=kind,
        program=table.required_text("program", WORD) if kind is EmulatorKind.QEMU else None,
        machine=None if kind is EmulatorKind.NATIVE else table.required_text("machine", WORD),
        arguments=table.texts("arguments", COMMAND_WORD),
        package=table.text("package", WORDS),
    )
    table.done()
    return result


def _flasher(table: TomlTable | None) -> Flasher | None:
    if table is None:
        return None
    command = table.texts("command", COMMAND_WORD)
    if not any("{program}" in word for word in command):
        raise table.problem("command", "it has no placeholder for the program's file", "{program}")
    result = Flasher(command, table.text("package", WORDS))
    table.done()
    return result


def _serial(table: TomlTable | None) -> Serial | None:
    if table is None:
        return None
    result = Serial(table.required_integer("baud"), table.integer("vid"), table.integer("pid"))
    table.done()
    return result


def _projects(table: TomlTable) -> tuple[ProjectSupport, ...]:
    names = [kind.value for kind in ProjectType]
    supports = []
    for name, entry in table.named_tables():
        if name not in names:
            hint = nearest(name, names)
            what = f"'{name}' is not a project type"
            raise table.problem(name, f"{what}: {hint}" if hint else what, ", ".join(names))
        supports.append(_support(ProjectType(name), entry))
    return tuple(supports)


# Project types whose framework has a name of its own for the board.
_NAMED = (ProjectType.ZEPHYR, ProjectType.ARDUINO, ProjectType.ESP_IDF, ProjectType.PLATFORMIO)


def _support(kind: ProjectType, table: TomlTable) -> ProjectSupport:
    result = ProjectSupport(
        type=kind,
        label=table.required_choice("label", Label),
        parts=table.texts("parts", WORD),
        definitions=table.texts("definitions", WORD),
        uart=table.text("uart", WORD),
        semihosting=table.flag("semihosting"),
        board=table.required_text("board", WORD) if kind in _NAMED else None,
        platform=table.required_text("platform", WORD) if kind is ProjectType.PLATFORMIO else None,
        qualified_board=(
            table.required_text("qualified_board", WORD) if kind is ProjectType.ZEPHYR else None
        ),
        aliases=table.texts("aliases", WORD),
        stack=table.integer("stack") or DEFAULT_STACK,
    )
    table.done()
    for definition in result.definitions:
        if not _DEFINITION.fullmatch(definition):
            raise table.problem("definitions", f"got '{definition}'", "NAME or NAME=value")
    for part in (*result.parts, *filter(None, [result.uart])):
        if not _NAME.fullmatch(part):
            raise table.problem("parts", f"got '{part}'", "the name of a template folder")
    return result
