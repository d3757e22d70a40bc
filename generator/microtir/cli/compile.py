"""`microtir compile`: a model file into C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.building import build_model
from microtir.cli.choice import check_choice
from microtir.cli.model import Model
from microtir.cli.output import cell, facts, shape, write, write_json, write_table
from microtir.cli.progress import Progress
from microtir.cli.projects import ProjectTypeName, create_project, print_project
from microtir.config import CompilationConfig
from microtir.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from microtir.artifact import Artifact

SOURCES = "sources"
PROJECT = "project"
_FORMATS = (SOURCES, PROJECT)
_NOT_BUILT = ("mlf",)


def compile_model(
    model: Model,
    config: CompilationConfig,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Folder for the generated files."),
    ] = None,
    output_format: Annotated[
        str,
        typer.Option(
            "--output-format",
            "-f",
            metavar="|".join(_FORMATS),
            help="sources: C files and header; project: a project for --board.",
        ),
    ] = SOURCES,
    board: Annotated[
        str | None,
        typer.Option("--board", metavar="BOARD", help="The board: its target is the default."),
    ] = None,
    project_type: ProjectTypeName = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replaces a folder that holds other files, which are lost."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Prints the summary as JSON.")] = False,
) -> ExitCode:
    """Compiles a model to C. Needs no C compiler."""
    _check_format(output_format)
    if output is None:
        raise UsageError(
            "there is no folder to write to", where="microtir compile", fix="add -o DIR"
        )
    if output_format == PROJECT:
        return _project(model, config, output, board, project_type, force=force)
    if project_type is not None:
        raise UsageError(
            "--project-type is of no use without --output-format project",
            where="microtir compile",
        )
    with Progress() as progress:
        artifact = build_model(model, config, progress).artifact
        folder = artifact.export(output, output_format, force=force)
    if as_json:
        write_json(_summary(artifact, folder))
    else:
        _print(artifact, folder)
    return ExitCode.DONE


def _project(
    model: str,
    config: CompilationConfig,
    output: Path,
    board: str | None,
    project_type: str | None,
    *,
    force: bool,
) -> ExitCode:
    """The same as `microtir micro create-project`."""
    if board is None:
        raise UsageError(
            "a project is for a board", where="microtir compile", fix="add --board BOARD"
        )
    print_project(create_project([model], config, output, board, project_type, force=force))
    return ExitCode.DONE


def _check_format(given: str) -> None:
    """Refuse what is not built before the model is compiled."""
    if given in _NOT_BUILT:
        raise UsageError(
            f"the output format '{given}' is not built yet",
            where="--output-format",
            legal=", ".join(_FORMATS),
        )
    check_choice("output format", given, _FORMATS, "--output-format")


def _summary(artifact: Artifact, folder: Path) -> dict[str, object]:
    metadata = artifact.metadata
    return {
        "output": str(folder),
        "files": [
            {"path": file.path, "bytes": len(file.text.encode())} for file in artifact.sources
        ],
        "module_name": metadata["module_name"],
        "model": metadata["model"],
        "layers": len(metadata["layers"]),
        "macs": sum(layer["macs"] for layer in metadata["layers"]),
        "weights_bytes": metadata["weights_bytes"],
        "memory": metadata["memory"],
        "ports": metadata["ports"],
    }


def _print(artifact: Artifact, folder: Path) -> None:
    metadata, name = artifact.metadata, artifact.metadata["module_name"]
    memory = metadata["memory"]
    assert memory is not None  # what the frontend reads is a model
    workspace = (
        f"{cell(memory['workspace_size'])} bytes of RAM; lower bound "
        f"{cell(memory['lower_bound'])}, gap {cell(memory['gap'])}"
    )
    rows: list[tuple[str, object]] = [
        ("layers", f"{len(metadata['layers'])} functions in {name}.c"),
        ("workspace", workspace),
        ("weights", f"{cell(metadata['weights_bytes'])} bytes of flash"),
    ]
    rows += [
        (port["kind"], f"{port['member']}: {port['dtype']} {shape(port['shape'])}")
        for port in metadata["ports"]
    ]
    rows.append(("call", f"{name}_run(&inputs, &outputs, workspace), see {name}.h"))
    write(f"{metadata['model']['file'] if metadata['model'] else name} -> {folder}")
    files = [(file.path, len(file.text.encode())) for file in artifact.sources]
    write_table(("file", "bytes"), files, right=("bytes",))
    write("")
    facts(rows)
