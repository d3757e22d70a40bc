"""Exports programs in Model Library Format: sources, metadata and runtime in one archive."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path, PurePosixPath

from microtir.artifact.contents import Contents
from microtir.artifact.folder import whose
from microtir.artifact.joint_memory import ConcurrentModules, joint_workspace
from microtir.artifact.mlf.archive import programs_of
from microtir.artifact.mlf.layout import (
    HEADERS,
    METADATA,
    ORIGINS,
    PARAMETERS,
    SOURCES,
    has_workspace,
    is_model,
    module_name,
    parameter_places,
    places,
    runtime_units,
)
from microtir.artifact.mlf.metadata import archive_metadata
from microtir.codegen import joint_workspace_header, joint_workspace_source
from microtir.codegen.microtvm.params import to_params
from microtir.errors import OutputError, UsageError, instead_of_replacing
from microtir.support.arguments import checked_arguments
from microtir.support.files import cannot_write, replace_file
from microtir.tir.text import to_text


@checked_arguments
def export_model_library_format(
    artifacts: Contents | Sequence[Contents],
    path: str | os.PathLike[str],
    *,
    together: Sequence[Sequence[str]] = (),
    timestamp: datetime | None = None,
    force: bool = False,
) -> Path:
    """Write compiled programs into one archive in Model Library Format, version 7.

    Args:
        artifacts: one or more models with different module names, or one user's program.
            Several models can share one workspace: its size, and the place of each in it, are in
            `joint_workspace.h` and in the metadata.
        path: the file; an archive that microtir wrote before for the same models is replaced.
        together: sets of names of modules that may run at the same time, because one interrupts
            another or keeps something in its workspace while another runs: they get memory beside
            each other, as do those that an archive named before, which artifacts were imported
            from. All others run one after another and share it.
        timestamp: time of the export, with its zone. Without it the same programs give the same
            bytes always.
        force: replace also other models, or a file that microtir did not write; it is lost.

    Returns:
        The file.

    Raises:
        UsageError: no program, several of one name, or several with a user's program among them;
            `together` names something else than several modules.
        OutputError: the file is not microtir's, or cannot be written.
    """
    models = tuple(artifacts) if isinstance(artifacts, list | tuple) else (artifacts,)
    _check(models)
    units = runtime_units(models)
    is_alone, is_microtvm = len(models) == 1, bool(units)
    layouts = [places(a, is_alone=is_alone, is_microtvm=is_microtvm) for a in models]
    files = {path: text.encode() for path, text in units.items()}
    for artifact, layout in zip(models, layouts, strict=True):
        _add(files, _sources(artifact, layout))
        _add(files, _beside(artifact))
    names = tuple(map(module_name, models))
    sets = ConcurrentModules.of(together, models)
    if len(models) > 1:
        text = joint_workspace_header(names, joint_workspace(models, sets), sets.sorted())
        _add(files, {f"{HEADERS}/joint_workspace.h": text.encode()})
        inside = [module_name(artifact) for artifact in models if has_workspace(artifact)]
        if inside:
            source = joint_workspace_source(inside, sets.sorted())
            _add(files, {f"{SOURCES}/joint_workspace.c": source.encode()})
    metadata = archive_metadata(models, layouts, timestamp, sets)
    files[METADATA] = (json.dumps(metadata, indent=2) + "\n").encode()
    target = Path(path)
    with cannot_write(target):
        _refuse_foreign(target, models, force)
    replace_file(target, _archive(files, int(timestamp.timestamp()) if timestamp else 0))
    return target


def _check(artifacts: Sequence[Contents]) -> None:

    where = "export_model_library_format(artifacts)"
    if not all(isinstance(artifact, Contents) for artifact in artifacts):
        raise UsageError(
            "argument 'artifacts' contains something that is not an artifact",
            where=where,
            legal="the result of build(), or a sequence of such results",
        )
    if not artifacts:
        raise UsageError("there is nothing to export", where=where, legal="one or more artifacts")
    # Names of files and macros have one case.
    names = [module_name(artifact).lower() for artifact in artifacts]
    for artifact, name in zip(artifacts, names, strict=True):
        if names.count(name) > 1:
            raise UsageError(
                f"there are {names.count(name)} programs with the module name '{name}'",
                where=where,
                fix="give each program a different module_name in its configuration",
            )
        if len(artifacts) > 1 and not is_model(artifact):
            raise UsageError(
                f"'{name}' contains only functions, and no model, so it cannot share an archive",
                where=where,
                legal="only models, or a single program of functions",
                fix="export this program into a separate archive",
            )


def _sources(artifact: Contents, layout: Mapping[str, str]) -> dict[str, bytes]:
    return {layout[f.path]: f.text.encode() for f in artifact.sources if f.path in layout}


def _beside(artifact: Contents) -> dict[str, bytes]:
    """Return what microTVM put beside the sources: parameters, and the program they come from."""
    name = module_name(artifact)
    # Where weights are part of the sources there are none.
    files = {f"{PARAMETERS}/{name}.params": to_params({})} if is_model(artifact) else {}
    places = parameter_places(name, [file.path for file in artifact.data])
    files |= {places[file.path]: file.content for file in artifact.data}
    if artifact.module.functions:
        text = to_text(artifact.module.functions, constants=False)
        files[f"{ORIGINS}/{name}.tir"] = text.encode()
    return files


def _add(files: dict[str, bytes], more: Mapping[str, bytes]) -> None:
    """Add files; programs share those of the runtime."""
    for path, content in more.items():
        if files.setdefault(path, content) != content:
            raise UsageError(
                f"two programs have different files '{path}'",
                where="export_model_library_format(artifacts)",
                fix="compile all programs with the same version of microtir",
            )


def _archive(files: Mapping[str, bytes], seconds: int) -> bytes:
    """Pack an uncompressed tar that is the same for the same files: sorted, owned by root."""
    folders = {str(parent) for path in files for parent in PurePosixPath(path).parents}
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted({*files, *folders}, key=lambda path: PurePosixPath(path).parts):
            entry = tarfile.TarInfo("." if path == "." else f"./{path}")
            entry.uname = entry.gname = "root"
            entry.mtime = seconds
            if path in files:
                entry.mode, entry.size = 0o644, len(files[path])
                tar.addfile(entry, io.BytesIO(files[path]))
            else:
                entry.mode, entry.type = 0o755, tarfile.DIRTYPE
                tar.addfile(entry)
    return stream.getvalue()


def _refuse_foreign(target: Path, artifacts: Sequence[Contents], force: bool) -> None:
    if target.is_dir():
        raise OutputError("is a folder, not a file", where=str(target), fix="choose another name")
    if force or not target.exists():
        return
    legal = "a new file, or an archive that microtir wrote for the same models"
    there = programs_of(target)
    if there is None:
        raise OutputError(
            "microtir did not write this file",
            where=str(target),
            legal=legal,
            fix=instead_of_replacing("name"),
        )
    if set(there) != {whose(artifact.metadata) for artifact in artifacts}:
        raise OutputError(
            f"the archive contains other programs: {', '.join(there)}",
            where=str(target), legal=legal, fix=instead_of_replacing("name")
        )  # fmt: skip
