"""Compiles an artifact for the host: a shared library, or an executable under sanitizers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from microtir.artifact import Artifact
from microtir.host import cache
from microtir.host.interface import interface_of
from microtir.host.toolchain import Compiler, run_compiler
from microtir.support import resources

LIBRARY = "program.so"
HARNESS, HARNESS_FILE = "harness", "harness.c"

# Contraction into fused multiply-adds would round once where TIR, and so the reference, round
# twice; GNU C contracts unless it is told not to.
_COMMON = ("-std=c99", "-ffp-contract=off", "-I.", "-Iruntime_crt/include")
# posix_memalign is not part of C99.
_HARNESS_COMMON = ("-std=gnu99", *_COMMON[1:])
# A branch of the source is one of the program only without optimisation.
_COUNTED = ("-O0", "--coverage")
_RUNTIME = "runtime_crt/"  # in the files of an artifact
# Without optimisation every operation of the source is there to be watched, and compiling is fast.
_SANITIZERS = (
    "-g",
    "-O0",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined,float-cast-overflow",
    "-fno-sanitize-recover=all",
)


@dataclass(frozen=True, slots=True)
class Build:
    """The way in which an artifact is compiled for this machine.

    With `debug` the host can see every layer; `native` allows every instruction of this machine.
    """

    compiler: Compiler
    opt_level: int = 2
    debug: bool = False
    native: bool = False


def shared_library(artifact: Artifact, build: Build) -> Path:
    """Compile an artifact into a shared library and return its path.

    Raises:
        ToolError: the compiler failed.
    """
    files = _files(artifact)
    flags = [*_COMMON, f"-O{build.opt_level}", "-fPIC", *_native(build.native)]
    own = ["-shared", *_packed_support(artifact, files)]
    if interface_of(artifact).has_nodes:
        files["nodes.c"] = _support("nodes.c")
        own.append("-D_POSIX_C_SOURCE=199309L")  # it reads a clock
    if build.debug:
        files |= {name: _support(name) for name in ("hook.h", "hook.c")}
        own += ["-include", "hook.h", _hook_macro(artifact)]
    return _compiled(build.compiler, flags, own, files, LIBRARY)


def sanitized_executable(
    artifact: Artifact, compiler: Compiler, call: str, *, native: bool = False
) -> Path:
    """Compile an artifact and the harness into a program that address and UB sanitizers watch.

    Args:
        artifact: the program.
        compiler: gcc or clang.
        call: C expression that calls the function; see templates/host/harness.c.
        native: whether every instruction of this machine may be used.

    Raises:
        ToolError: the compiler failed, or has no sanitizers.
    """
    flags = [*_HARNESS_COMMON, *_SANITIZERS, *_native(native)]
    files = {**_files(artifact), HARNESS_FILE: _support(HARNESS_FILE)}
    own = [*_harness_macros(artifact, call), *_packed_support(artifact, files)]
    return _compiled(compiler, flags, own, files, HARNESS)


@dataclass(frozen=True, slots=True)
class InstrumentedProgram:
    """A program that counts how often each line of the generated C runs, for gcov.

    Args:
        artifact: the program.
        compiler: gcc.
        folder: holds the sources, and objects and counts below their names.
    """

    artifact: Artifact
    compiler: Compiler
    folder: Path

    def compile(self) -> tuple[str, ...]:
        """Compile the files of the artifact; returns the units, relative to the folder."""
        files = _files(self.artifact)
        for path, text in files.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text, encoding="utf-8", newline="\n")
        units = tuple(_units(files))
        for unit in units:
            command = [*_HARNESS_COMMON, *_COUNTED, "-c", "-o", _object(unit), unit]
            run_compiler(self.compiler, command, self.folder)
        return units

    def executable(self, call: str) -> Path:
        """Link the objects with the harness for a call, a C expression."""
        files = {HARNESS_FILE: _support(HARNESS_FILE)}
        macros = [*_harness_macros(self.artifact, call), *_packed_support(self.artifact, files)]
        for path, text in files.items():
            (self.folder / path).write_text(text, encoding="utf-8", newline="\n")
        objects = [_object(unit) for unit in _units(_files(self.artifact))]
        units = _units(files)
        command = [*_HARNESS_COMMON, *macros, "-o", HARNESS, *units, *objects, "--coverage", "-lm"]
        run_compiler(self.compiler, command, self.folder)
        return self.folder / HARNESS


def _object(unit: str) -> str:
    return f"{PurePosixPath(unit).with_suffix('.o')}"


def _harness_macros(artifact: Artifact, call: str) -> list[str]:
    return [
        f'-DHARNESS_HEADER="{call_header(artifact)}"',
        f"-DHARNESS_CALL={call}",
        f"-DHARNESS_TEXT={module_name(artifact)}_status_text",
    ]


def module_name(artifact: Artifact) -> str:
    """Return what every C identifier of the artifact begins with."""
    return artifact.metadata.module_name


def call_header(artifact: Artifact) -> str:
    """Return the header that declares what a caller calls."""
    return "host_call.h" if interface_of(artifact).is_packed else f"{module_name(artifact)}.h"


def _packed_support(artifact: Artifact, files: dict[str, str]) -> list[str]:
    """Add what calls packed functions, if the artifact has them; its flags."""
    if not interface_of(artifact).is_packed:
        return []
    name = module_name(artifact)
    files |= {file: _support(file) for file in ("packed.h", "packed.c")}
    files["host_call.h"] = f'#include "{name}.h"\n#include "packed.h"\n'
    return [f'-DHOST_HEADER="{name}_packed.h"', f"-DHOST_MODULE={name}_module"]


def _native(wanted: bool) -> list[str]:
    return ["-march=native"] if wanted else []


def _compiled(
    compiler: Compiler, flags: list[str], own: list[str], files: dict[str, str], name: str
) -> Path:
    """Compile the files into the program `name` and return its path.

    Args:
        compiler: that compiles and links.
        flags: for every file.
        own: more of them for all but the runtime, and for linking.
        files: of the program, the runtime among them if it needs that.
        name: of the program.
    """
    units = [path for path in _units(files) if not path.startswith(_RUNTIME)]

    def make(folder: Path) -> None:
        objects = _runtime_objects(compiler, flags, files)
        run_compiler(compiler, [*flags, *own, "-o", name, *units, *objects, "-lm"], folder)

    return cache.folder_for(compiler, [*flags, *own], files, make) / name


def _runtime_objects(compiler: Compiler, flags: list[str], files: dict[str, str]) -> list[str]:
    """Return the objects of the runtime, which is several times the C of a small model.

    Every program brings it, and it includes nothing of theirs: it is compiled once.
    """
    runtime = {path: text for path, text in files.items() if path.startswith(_RUNTIME)}
    units = _units(runtime)

    def make(folder: Path) -> None:
        run_compiler(compiler, [*flags, "-c", *units], folder)

    if not units:
        return []
    folder = cache.folder_for(compiler, flags, runtime, make)
    return [str(folder / f"{PurePosixPath(unit).stem}.o") for unit in units]


def _units(files: Iterable[str]) -> list[str]:
    return sorted(path for path in files if path.endswith(".c"))


def _files(artifact: Artifact) -> dict[str, str]:
    return {file.path: file.text for file in artifact.sources}


def _support(name: str) -> str:
    return (resources.templates() / "host" / name).read_text(encoding="utf-8")


def _hook_macro(artifact: Artifact) -> str:
    parameters = "(layer,output,data,first,last)"
    macro = f"{module_name(artifact).upper()}_LAYER_HOOK"
    return f"-D{macro}{parameters}=microtir_host_hook{parameters}"
