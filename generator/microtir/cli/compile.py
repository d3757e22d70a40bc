"""`microtir compile` turns a model file into C."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.building import Built, build_model
from microtir.cli.choice import check_choice
from microtir.cli.dump_code import DumpCode, dump_formats, log_of, write_dumps
from microtir.cli.model import Model
from microtir.cli.output import cell, facts, shape, write, write_json, write_table
from microtir.cli.progress import Progress
from microtir.cli.projects import ProjectTypeName, create_project, print_project
from microtir.cli.quantise_options import with_quantiser
from microtir.cli.quantised import print_cost_below
from microtir.cli.quantiser import Quantiser
from microtir.cli.stored_as_is import changed_values, write_changed_values
from microtir.cli.tvmc import TFLITE, ModelFormat
from microtir.config import CompilationConfig
from microtir.config.processors import for_processors
from microtir.errors import ExitCode, UsageError
from microtir.support.names import c_name

if TYPE_CHECKING:
    from microtir.artifact import Artifact, ConstantPoolData, Metadata, PoolData
    from microtir.quantise.summary import Summary

SOURCES = "sources"
ARCHIVE = "mlf"
PROJECT = "project"
_WHERE = "microtir compile"
_FORMATS = (SOURCES, ARCHIVE, PROJECT)

Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="DIR|FILE.tar", help="Folder or archive for the generated files."
    ),
]
Timestamp = Annotated[
    bool,
    typer.Option(
        "--timestamp",
        help="Writes the current time into an archive. Without this, archives are reproducible.",
    ),
]
Certificate = Annotated[
    bool,
    typer.Option(
        "--certificate",
        help="Adds a certificate with proven facts, and certcheck.py, which proves them again. "
        "With --board it also counts instructions.",
    ),
]


@with_quantiser
def compile_model(
    model: Model,
    config: CompilationConfig,
    output: Output = None,
    output_format: Annotated[
        str,
        typer.Option(
            "--output-format",
            "-f",
            metavar="|".join(_FORMATS),
            help="sources: C files and header. mlf: an archive in Model Library Format. "
            "project: a project for --board.",
        ),
    ] = SOURCES,
    board: Annotated[
        str | None,
        typer.Option("--board", metavar="BOARD", help="The board, which sets the default target."),
    ] = None,
    project_type: ProjectTypeName = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Deletes other files in the folder first."),
    ] = False,
    timestamp: Timestamp = False,
    model_format: ModelFormat = TFLITE,
    dump_code: DumpCode = None,
    certificate: Certificate = False,
    quantiser: Quantiser | None = None,
    as_json: Annotated[bool, typer.Option("--json", help="Prints the summary as JSON.")] = False,
) -> ExitCode:
    """Compiles a model to C. No C compiler is needed."""
    check_choice("model format", model_format, (TFLITE,), "--model-format")
    _check_format(output_format, timestamp=timestamp, certificate=certificate)
    target = _target_of(output, output_format)
    dumped = dump_formats(dump_code)
    if output_format == PROJECT:
        if dumped:
            raise UsageError(
                "--dump-code cannot be used with --output-format project", where=_WHERE
            )
        return _project(model, config, target, board, project_type, quantiser, force=force)
    if project_type is not None:
        raise UsageError(
            "--project-type requires --output-format project",
            where=_WHERE,
        )
    with Progress() as progress:
        log = log_of(dumped)
        built = build_model(model, config, progress, board, log, quantiser)
        built = _certified(built, board) if certificate else built
        artifact = built.artifact
        written = _export(artifact, target, output_format, timestamp=timestamp, force=force)
        write_dumps(dumped, built, log, target)
        price = built.quantised.summary() if built.quantised else None
    if as_json:
        write_json(_summary(artifact, written, price))
    else:
        _print(built, written, price)
    return ExitCode.DONE


def _check_format(output_format: str, *, timestamp: bool, certificate: bool) -> None:
    """Refuse an unknown format, and options that need another."""
    check_choice("output format", output_format, _FORMATS, "--output-format")
    if timestamp and output_format != ARCHIVE:
        raise UsageError("--timestamp requires --output-format mlf", where=_WHERE)
    if certificate and output_format != SOURCES:
        raise UsageError("--certificate requires --output-format sources", where=_WHERE)


def _certified(built: Built, board: str | None) -> Built:
    """Add a certificate, with the instructions of a run if the board's emulator counts them."""
    from microtir.boards import load_board
    from microtir.certificate import certified
    from microtir.certificate.counting import count_instructions
    from microtir.profiling import counts_instructions

    chosen = load_board(board) if board is not None else None
    counts = chosen is not None and counts_instructions(chosen)
    counted = count_instructions(built.artifact, chosen) if chosen and counts else None
    return replace(built, artifact=certified(built.artifact, counted))


def _target_of(output: Path | None, output_format: str) -> Path:
    """Return where to write, if that suits the format."""
    if output is None:
        what, name = ("archive", "FILE.tar") if output_format == ARCHIVE else ("folder", "DIR")
        raise UsageError(f"no output {what} is named", where=_WHERE, fix=f"add -o {name}")
    if output.suffix == ".tar" and output_format != ARCHIVE:
        raise UsageError(
            f"-o {output} is the name of an archive, but --output-format is {output_format}",
            where=_WHERE,
            fix="add --output-format mlf, or name a folder",
        )
    return output


def _project(
    model: str,
    config: CompilationConfig,
    output: Path,
    board: str | None,
    project_type: str | None,
    quantiser: Quantiser | None,
    *,
    force: bool,
) -> ExitCode:
    """Create the project that `microtir micro create-project` creates."""
    if board is None:
        raise UsageError("a project needs a board", where=_WHERE, fix="add --board BOARD")
    project, price = create_project(
        [model], config, output, board, project_type, force=force, quantiser=quantiser
    )
    print_project(project, price)
    return ExitCode.DONE


def _export(
    artifact: Artifact, output: Path, output_format: str, *, timestamp: bool, force: bool
) -> Path:
    if not timestamp:
        return artifact.export(output, output_format, force=force)
    from datetime import datetime, timezone

    from microtir.artifact import export_model_library_format

    now = datetime.now(timezone.utc)
    return export_model_library_format(artifact, output, timestamp=now, force=force)


def _summary(artifact: Artifact, folder: Path, price: Summary | None) -> dict[str, object]:
    metadata, written = artifact.metadata, artifact.metadata.as_json()
    return {
        "output": str(folder),
        "files": [{"path": file.path, "bytes": len(file.content)} for file in artifact.files],
        "module_name": metadata.module_name,
        "targets": [str(t) for t in artifact.module.require_config("compile").targets],
        "model": written["model"],
        "layers": len(metadata.layers),
        "macs": sum(layer.macs for layer in metadata.layers),
        "macs_executed": sum(layer.macs_executed for layer in metadata.layers),
        "macs_recomputed": sum(layer.macs_recomputed for layer in metadata.layers),
        "weights_bytes": metadata.weights_bytes,
        "memory": written["memory"],
        "constant_pools": written["constant_pools"],
        "ports": written["ports"],
        "changed_values": [asdict(one) for one in changed_values(artifact.module)],
        **({"state": written["state"]} if metadata.state is not None else {}),
        **({"quantisation": price.to_dict()} if price is not None else {}),
    }


def _pool(pool: PoolData) -> str:
    limit = f" of {cell(pool.limit)}" if pool.limit is not None else ""
    internal = ", an array of the code" if pool.is_internal else ""
    return f"{cell(pool.size)}{limit} bytes{internal}"


def _state(metadata: Metadata) -> list[tuple[str, object]]:
    """Return the RAM of what outlives a run; nothing for a model that keeps nothing."""
    if metadata.state is None:
        return []
    states = ", ".join(f"{m.member} {m.dtype} {shape(m.shape)}" for m in metadata.state.members)
    return [("state", f"{cell(metadata.state.size)} bytes of RAM that outlive a run: {states}")]


def _recomputed(metadata: Metadata) -> list[tuple[str, object]]:
    """Return the price of images that are computed in bands of columns."""
    from microtir.report.summary import recomputed

    layers = metadata.layers
    text = recomputed(
        sum(layer.macs_executed for layer in layers),
        sum(layer.macs_recomputed for layer in layers),
    )
    return [("recomputed", text)] if text else []


def _constants(pool: ConstantPoolData) -> str:
    limit = f" of {cell(pool.limit)}" if pool.limit is not None else ""
    section = f", section {pool.section}" if pool.section else ""
    passed = f", passed: {pool.file}" if pool.file else ""
    return f"{cell(pool.size)}{limit} bytes{section}{passed}"


def _flash(built: Built) -> list[tuple[str, object]]:
    """Return what a program takes of its budget, and how sure that is."""
    artifact, compiler = built.artifact, built.compiler
    budget = artifact.module.require_config("compile").budget.flash
    if budget is None:
        return []
    if compiler is not None:
        flash = artifact.flash(compiler(artifact))
        code = f"compiled by {compiler.name}"
        return [("flash", f"{cell(flash.bytes)} of {cell(budget)} bytes; {code}")]
    flash = artifact.flash()
    arrays = flash.bytes - flash.code
    text = (
        f"about {cell(flash.bytes)} of {cell(budget)} bytes; the code is estimated, in truth it "
        f"may be {cell(arrays + flash.least)} to {cell(arrays + flash.most)}"
    )
    is_close = arrays + flash.most > budget
    return [("flash", f"{text}: --board BOARD compiles it" if is_close else text)]


def _not_taken(artifact: Artifact) -> list[tuple[str, object]]:
    """Return what would save memory and costs too much speed, if there is such a thing."""
    program = artifact.module.program
    declined = program.declined if program else None
    return [("trade-off", declined.text)] if declined else []


def _print(built: Built, folder: Path, price: Summary | None) -> None:
    artifact = built.artifact
    metadata, name = artifact.metadata, artifact.metadata.module_name
    memory = metadata.memory
    assert memory is not None  # what the frontend reads is a model
    workspace = (
        f"{cell(memory.workspace_size)} bytes of RAM; lower bound "
        f"{cell(memory.lower_bound)}, gap {cell(memory.gap)}"
    )
    pools = [pool for pool in memory.pools if len(memory.pools) > 1]
    passed = [c_name(pool.name) for pool in memory.pools if not pool.is_internal]
    constants = metadata.constant_pools
    passed += [c_name(pool.name) for pool in constants if not pool.is_internal]
    passed += ["parameters"] * (metadata.parameters is not None)
    executor = artifact.module.require_config("compile").executor
    passed += ["count"] * executor.batch_count + ["&guard"] * executor.guard_inputs
    rows: list[tuple[str, object]] = [
        ("layers", f"{len(metadata.layers)} functions in {name}.c"),
        *_recomputed(metadata),
        ("workspace", workspace),
        *_state(metadata),
        *((f"pool {pool.name}", _pool(pool)) for pool in pools),
        ("weights", f"{cell(metadata.weights_bytes)} bytes of flash"),
        *_flash(built),
        *((f"constants {pool.name}", _constants(pool)) for pool in constants),
        *_not_taken(artifact),
    ]
    rows += [
        (port.kind, f"{port.member}: {port.dtype} {shape(port.shape)}") for port in metadata.ports
    ]
    arguments = ", ".join(
        ["&inputs", "&outputs", *["&state"] * (metadata.state is not None), *passed]
    )
    rows.append(("call", f"{name}_run({arguments}), see {name}.h"))
    model = metadata.model.file if metadata.model else name
    processors = for_processors(artifact.module.require_config("compile").targets)
    write(f"{model} -> {folder}, {processors}")
    files = [(file.path, len(file.content)) for file in artifact.files]
    write_table(("file", "bytes"), files, right=("bytes",))
    write("")
    facts(rows)
    write_changed_values(model, changed_values(artifact.module))
    if price is not None:
        print_cost_below(price)
