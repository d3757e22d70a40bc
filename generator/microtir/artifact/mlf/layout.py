"""Says where the files of an artifact lie in an archive in Model Library Format 7."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from microtir.artifact.contents import Contents
from microtir.artifact.mlf import runtime_units as runtime_layout
from microtir.codegen import METADATA_FILE, abi_prefix, params_name

VERSION = 7
METADATA = "metadata.json"
SOURCES = "codegen/host/src"
HEADERS = "codegen/host/include"
GRAPHS = "executor-config/graph"
PARAMETERS = "parameters"
ORIGINS = "src"  # what the sources were made from, and what a build system must not compile
RUNTIME = "runtime"
TEMPLATES = "templates"

_RUNTIME_SOURCE = "runtime_crt/"  # in the files of an artifact


def module_name(artifact: Contents) -> str:
    """Return the name of an artifact's module."""
    return artifact.metadata.module_name


def is_model(artifact: Contents) -> bool:
    """Return whether an artifact is a model ("full-model") or user's functions ("operator")."""
    return artifact.metadata.model is not None


def has_runtime(artifact: Contents) -> bool:
    """Return whether the C runtime is part of an artifact."""
    return any(file.path.startswith(_RUNTIME_SOURCE) for file in artifact.sources)


def has_workspace(artifact: Contents) -> bool:
    """Return whether the workspace is in the code, as in microTVM's interface without pools."""
    name = f"{abi_prefix(module_name(artifact))}_workspace.c"
    return any(file.path == name for file in artifact.sources)


def runtime_units(artifacts: Sequence[Contents]) -> dict[str, str]:
    """Return the files that stand for microTVM's where the runtime has its interface, by path."""
    paths = {path for artifact in artifacts for path in _runtime(artifact)}
    if not runtime_layout.has_microtvm(paths):
        return {}
    return {f"{RUNTIME}/{path}": text for path, text in runtime_layout.units(paths).items()}


def _runtime(artifact: Contents) -> list[str]:
    """Return the paths of the runtime's files, below its folder."""
    paths = (file.path for file in artifact.sources)
    return [p.removeprefix(_RUNTIME_SOURCE) for p in paths if p.startswith(_RUNTIME_SOURCE)]


def places(artifact: Contents, *, is_alone: bool, is_microtvm: bool = False) -> Mapping[str, str]:
    """Return the path of every source of an artifact in the archive.

    Build systems compile all that lies in `codegen/host/src`. Of several programs that are linked
    together only one may define what a program has once, so that such files lie elsewhere then.

    Args:
        artifact: of the archive.
        is_alone: whether it is the only one.
        is_microtvm: whether the runtime lies as microTVM's did.
    """
    return dict(_places(artifact, is_alone, is_microtvm))


def _places(artifact: Contents, is_alone: bool, is_microtvm: bool) -> Iterator[tuple[str, str]]:
    name = module_name(artifact)
    stem = f"{name}_lib" if is_model(artifact) else "lib"
    number = 0
    for file in artifact.sources:
        if file.path == METADATA_FILE:
            continue
        if file.path.endswith(".template"):
            yield file.path, f"{TEMPLATES}/{PurePosixPath(file.path).name}"
        elif file.path.startswith(_RUNTIME_SOURCE):
            path = file.path.removeprefix(_RUNTIME_SOURCE)
            place = runtime_layout.place_of(path) if is_microtvm else path
            yield file.path, f"{RUNTIME}/{place}"
        elif "/" in file.path:
            # A third-party library: its files name each other as they lie in its folder.
            yield file.path, f"{SOURCES}/{file.path}"
        elif file.path.endswith(".h"):
            yield file.path, f"{HEADERS}/{file.path}"
        elif not is_alone and file.path in once_per_program(name):
            yield file.path, f"{ORIGINS}/{file.path}"
        elif file.path.endswith(".c"):
            yield file.path, f"{SOURCES}/{stem}{number}.c"
            number += 1
        elif file.path == graph_file(name):
            yield file.path, f"{GRAPHS}/{name}.graph"
        else:
            yield file.path, f"{ORIGINS}/{file.path}"


def parameter_places(name: str, paths: Collection[str]) -> dict[str, str]:
    """Return where the files of constants lie of a module that has files of these paths.

    What applications of microTVM look for is in TVM's form, where the interface is microTVM's. The
    file that generated code reads where it lies stands beside it then.
    """
    places = {path: f"{PARAMETERS}/{path}" for path in paths}
    if params_name(name) in paths:
        places[f"{name}.params"] = f"{PARAMETERS}/{name}.in_place.params"
        places[params_name(name)] = f"{PARAMETERS}/{name}.params"
    return places


def graph_file(name: str) -> str:
    """Return the graph as JSON, among the files of an artifact for the graph executor."""
    return f"{name}_graph.json"


def once_per_program(name: str) -> tuple[str, ...]:
    """Return a module's sources that a program with several modules must leave out."""
    prefix = abi_prefix(name)
    return (f"{name}_system_lib.c", f"{prefix}_workspace.c", f"{prefix}_system_lib.c")
