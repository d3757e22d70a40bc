"""Makes the values that the templates of projects may print: finished texts and lists of them.

`project_values` needs no file of the project; `build_values` adds what depends on which files
there are.  Both together are the contract of the templates: docs/boards.md lists them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from microtir.boards.board import (
    Board,
    BoardMemory,
    Console,
    MemoryKind,
    ProjectSupport,
    ProjectType,
)
from microtir.device.emulate import make_command
from microtir.projects.capacity import CHECKS, check_bytes
from microtir.projects.models import NO_SAMPLES, Models, ModelValues
from microtir.projects.options import ProjectOptions
from microtir.projects.project import Project
from microtir.projects.template import Template
from microtir.support.encoding import Encoded, cmake_code, cmake_words, make_code, make_recipe
from microtir.version import __version__

Values = dict[str, object]

_NAMED_MODELS = 3

_CONSOLE_TEXTS = {
    Console.UART: "Connect a terminal to the board's serial port. The program prints these lines:",
    Console.SEMIHOSTING: "The program prints these lines to a debugger, through semihosting:",
    Console.STDIO: "The program prints these lines:",
}

_FOLDER_TEXTS = {
    "model": "the generated models; do not change them",
    "src": "the application, which runs each model on its samples and prints the outputs",
    "board": "the start-up code, the linker script and the console of this board",
    "board_data": "the facts about the board",
}


def project_values(
    project: Project, support: ProjectSupport, models: Models, options: ProjectOptions, stack: int
) -> Values:
    """Return facts about models, board and options."""
    board = project.board
    names = models.names
    console = options.console or support.consoles[0]
    definitions = [*support.definitions, *options.definitions]
    if support.semihosting:
        definitions.append("SEMIHOSTING")
    if options.server:
        definitions.append("SERVER")
    if options.debug_checks:
        definitions.append("DEBUG_CHECKS")
    return {
        **application_values(models),
        "package": package_name(names),
        "board": board,
        "support": support,
        "toolchain": board.toolchain,
        "size_tool": f"{board.toolchain.prefix}size",
        "program": project.program,
        "memory_table": [
            {"what": what, "bytes": size}
            for what, size in (
                *memory_rows(models, stack if board.code else 0, board.reserve),
                *([(CHECKS, check_bytes(models))] if models.has_checks else []),
            )
        ],
        "stack_bytes": stack,
        "optimization": options.optimization,
        "definitions": definitions,
        "definition_flags": [
            *(f"-D{definition}" for definition in definitions),
            # The models' files see the hooks before their own first line.
            *(["-include", "src/layer_hooks.h"] if options.server else ()),
        ],
        "console_text": _CONSOLE_TEXTS[console],
        **_arduino_values(support),
        **_memory_values(board),
        **_tool_values(project),
    }


def application_values(models: Models) -> Values:
    """Return what the application's templates, and READMEs, say of models: no board is in it."""
    names = models.names
    return {
        "version": __version__,
        "title": " and ".join(names) or "the empty program",
        "models": models.models,
        "shared_pools": models.shared_pools,
        "together": [", ".join(names) for names in models.concurrent.sorted()],
        "model_count": len(names),
        "has_own_tensors": any(model.own_ports for model in models.models),
        "has_constants": any(model.constants for model in models.models),
        "has_internal": any(model.internal for model in models.models),
        "has_states": any(model.has_state for model in models.models),
        "has_rows": any(port.by_rows for model in models.models for port in model.ports),
        "uses_math": any(model.uses_math for model in models.models),
        "sample_arrays": models.sample_arrays,
        "expected_lines": [line for model in models.models for line in _expected_lines(model)],
        "workspace_bytes": models.workspace_bytes,
        "debug_checks": models.has_checks,
        "layers_max": max((model.layer_count for model in models.models), default=1),
    }


def _expected_lines(model: ModelValues) -> Iterator[str]:
    """Yield, as regular expressions, what the application prints of a model that is right."""
    steps = max(model.steps, 1)
    compared = [port for port in model.outputs if port.samples != NO_SAMPLES]
    for run in range(model.runs):
        step = f" step {run % steps}" if steps > 1 else ""
        for port in compared:
            yield f"{model.name} sample {run // steps}{step} {re.escape(port.label)} equal"
    yield f"{model.name} stack [0-9]+"


def build_values(project: Project, template: Template, paths: Sequence[str]) -> Values:
    """Return what depends on the files of the project."""
    sources = sorted(path for path in paths if path.endswith(".c"))
    own = template.folders
    library = [path for path in sources if own.hold(path)]
    headers = [path for path in paths if path.endswith(".h")]
    folders = sorted({own.include_folder(path) for path in headers})
    library_folders = {own.include_folder(p) for p in headers if own.hold(p)}
    script = "board/link.ld" if "board/link.ld" in paths else None
    link = [*project.board.toolchain.link_flags]
    # AVR's own script stays in place: ours is one more file, which only checks.
    is_whole = script is not None and project.board.toolchain.prefix != "avr-"
    start = ["-nostartfiles"] if is_whole else []
    option = "-T" if is_whole else ""
    place = "${CMAKE_CURRENT_SOURCE_DIR}/"
    top = sorted({PurePosixPath(path).parts[0] for path in paths})
    return {
        "sources": sources,
        "library_sources": library,
        "application_sources": [path for path in sources if path not in library],
        "library_folders": sorted(library_folders),
        "models_file": models_file(sources),
        "application_files": [PurePosixPath(path).name for path in sources if path not in library],
        "module_sources": [_beside(path, template) for path in library],
        "module_folders": [_beside(path, template) for path in sorted(library_folders)],
        "include_folders": folders,
        "include_flags": [f"-I{folder}" for folder in folders],
        "linker_script": script,
        "link_flags": [*link, *start, *([f"{option}{script}"] if script else [])],
        "cmake_link_flags": cmake_code(
            " ".join(
                [cmake_words([*link, *start]), *([f"{option}{place}{script}"] if script else [])]
            )
        ),
        "file_table": [
            {"path": f"{name}/", "text": text}
            for name, text in _FOLDER_TEXTS.items()
            if name in [*top, "board_data"]
        ],
    }


def models_file(paths: Iterable[str]) -> str:
    """Return the file of the application that calls the models; nothing where there is none."""
    return next((path for path in paths if PurePosixPath(path).name == "models.c"), "")


def _arduino_values(support: ProjectSupport) -> Values:
    """Return values of a board's name package:architecture:board; AVR's core is Debian's."""
    if support.type is not ProjectType.ARDUINO:
        return {}
    package, architecture, *_ = (support.board or "").split(":")
    return {
        "arduino_architecture": architecture,
        "arduino_is_packaged": (package, architecture) == ("arduino", "avr"),
    }


def package_name(names: Sequence[str]) -> str:
    """Return a name for the models' library: a C identifier, which every framework takes."""
    few = len(names) <= _NAMED_MODELS
    return "_".join([*(names if few else [names[0], "and_others"]), "models"])


def _beside(path: str, template: Template) -> str:
    """Return a library file's path as seen from the folder above the models' folder."""
    folder = PurePosixPath(template.models).parent
    inside = PurePosixPath(path)
    return (inside.relative_to(folder) if inside.is_relative_to(folder) else inside).as_posix()


def memory_rows(models: Models, stack: int, reserve: int) -> list[tuple[str, int]]:
    """Return what takes how many bytes; what is not known of a board is 0, and no row."""
    states = sum(model.ram.state for model in models.models)
    stacks = [model.stack_bytes for model in models.models]
    shared = ", shared by all models" * (len(models.models) > 1)
    if models.concurrent.sorted():
        shared = ", shared by models that take turns"
    return [
        (f"workspace{shared}", models.workspace_bytes),
        (f"inputs and outputs{shared}", models.tensor_bytes),
        *([("stack planned for the program", stack)] if stack else []),
        *([("states of models", states)] if states else []),
        *([("reserve of the board", reserve)] if reserve else []),
        ("weights, in flash", models.weights_bytes),
        *([("stack of a run, at most", max(stacks))] if stacks else []),
    ]


def _memory_values(board: Board) -> Values:
    if board.code is None or board.data is None:
        return {"memories": [], "other_memories": [], "code": None, "data": None}
    return {
        "memories": [_memory(memory) for memory in board.memories],
        "other_memories": [_memory(m) for m in board.memories if m not in (board.code, board.data)],
        "code": _memory(board.code),
        "data": _memory(board.data),
    }


def _memory(memory: BoardMemory) -> dict[str, object]:
    return {
        "region": memory.name.upper(),
        "section": memory.name,
        "is_copied": memory.kind is not MemoryKind.FLASH,
        "attributes": "rx" if memory.kind is MemoryKind.FLASH else "rwx",
        "origin": f"{memory.address:#x}",
        "length": f"{memory.size:#x}",
        "end": f"{memory.address + memory.size:#x}",
    }


def _tool_values(project: Project) -> Values:
    board = project.board
    requires = (
        *board.toolchain.requires,
        *(project.build_step.requires if project.build_step else ()),
    )
    emulator, flasher = board.emulator, board.flasher
    command = make_command(emulator, project.program) if emulator and project.program else []
    flash = [
        word.replace("{program}", project.program or "")
        for word in (flasher.command if flasher else ())
    ]
    return {
        "tools": [r.program for r in requires if r.program],
        "packages": sorted({r.package for r in requires}),
        "run_command": command if project.makes_program else [],
        "emulator_package": emulator.package if emulator else None,
        "flash_command": _flash_recipe(flash),
        "flash_example": [word.replace("{port}", "/dev/ttyACM0") for word in flash],
        "flash_package": flasher.package if flasher else None,
    }


def _flash_recipe(words: Sequence[str]) -> Encoded:
    """Return the command in a Makefile, where the caller of make names the serial port."""
    parts = ([make_recipe([part] * bool(part)) for part in word.split("{port}")] for word in words)
    return make_code(" ".join("$(PORT)".join(part) for part in parts))
