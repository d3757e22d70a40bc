"""Reads the file of an archive in Model Library Format, and trusts nothing of it."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from microtir.artifact.folder import whose_in
from microtir.artifact.mlf.layout import METADATA, VERSION
from microtir.artifact.mlf.metadata import EXTRA
from microtir.codegen.metadata import METADATA_VERSION
from microtir.errors import Fix, ModelFileError
from microtir.support.reading import WrongDataError, parse_json
from microtir.support.shown import shown
from microtir.support.texts import path_problem

MAX_BYTES = 256 * 2**20  # of an archive: far more than any microcontroller has flash
MAX_FILES = 10_000
MAX_MODULES = 64


def members_of(file: Path) -> dict[str, bytes]:
    """Read contents of the files by path: plain files and folders below the root only."""
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise damaged(file, f"the file has more than {MAX_BYTES} bytes")
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            return dict(_read_members(file, tar, len(content)))
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        raise damaged(file, f"the file is not a tar archive: {error}") from None
    except OSError as error:
        raise ModelFileError(
            f"the archive cannot be read: {error.strerror or error}", where=str(file)
        ) from None


def programs_of(path: Path) -> tuple[str, ...] | None:
    """Read the programs of a Model Library Format archive; None if microtir did not write it."""
    try:
        modules = modules_in(path, metadata_in(path, members_of(path)))
        return tuple(whose_in(module[EXTRA]["metadata"]) for module in modules)
    except (ModelFileError, KeyError, TypeError):
        return None


def _read_members(file: Path, tar: tarfile.TarFile, size: int) -> Iterator[tuple[str, bytes]]:
    """Yield the plain files, as long as they are as small as such an archive can hold.

    A sparse member claims bytes that the archive does not have, and a member may lie where another
    lies, too: what is read is counted, whatever the headers say.
    """
    paths: set[str] = set()
    left = size
    headers = 0
    while (member := tar.next()) is not None:
        headers += 1
        # Behind a member of a negative size Python would find the same header once more.
        left -= member.size if member.isreg() else 0
        if headers > MAX_FILES or left < 0 or member.size < 0:
            raise damaged(
                file, f"it declares more than {MAX_FILES} files, or more bytes than it has"
            )
        path = checked_path(file, member.name)
        if member.isdir():
            continue
        if not member.isreg() or member.issparse():
            raise damaged(file, f"{shown(member.name)} is neither a plain file nor a folder")
        if path in paths:
            raise damaged(file, f"the archive contains {shown(member.name)} twice")
        paths.add(path)
        stream = tar.extractfile(member)
        content = stream.read(member.size) if stream is not None else b""
        if len(content) != member.size:
            raise damaged(file, f"{shown(member.name)} is cut off")
        yield path, content


def checked_path(file: Path, name: str) -> str:
    """Return the path below the archive's root, which no member may leave."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name:
        raise damaged(file, f"{shown(name)} lies outside of the archive")
    short = path.as_posix()
    if short != "." and (problem := path_problem(short)):
        raise damaged(file, f"{shown(name)} {problem}")
    return short


def metadata_in(file: Path, members: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the metadata of an archive, of which the version is checked only."""
    if METADATA not in members:
        raise damaged(file, f"the archive has no {METADATA}")
    try:
        data = parse_json(members[METADATA])
    except WrongDataError as error:
        raise damaged(file, f"{METADATA}: {error.what}") from None
    if not isinstance(data, dict):
        raise damaged(file, f"{METADATA} is not an object")
    if data.get("version") != VERSION:
        raise damaged(file, f"{METADATA} has version {shown(data.get('version'))}, not {VERSION}")
    return data


def modules_in(file: Path, metadata: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the facts of each module; a program of style "operator" stands at the top."""
    modules = metadata.get("modules", {metadata.get("model_name"): metadata})
    if not isinstance(modules, dict) or not modules:
        raise damaged(file, f"{METADATA} lists no module")
    if len(modules) > MAX_MODULES:
        raise damaged(file, f"{METADATA} lists {len(modules)} modules, more than {MAX_MODULES}")
    for name, module in modules.items():
        if not isinstance(module, dict) or not isinstance(module.get(EXTRA), dict):
            raise damaged(file, f"the module {shown(name)} was written by another program")
        written = module[EXTRA].get("metadata")
        version = written.get("metadata_version") if isinstance(written, dict) else None
        if version != METADATA_VERSION:
            raise damaged(
                file, f"the module {shown(name)} was written by another version of microtir"
            )
        if written.get("module_name") != name:
            raise damaged(file, f"the metadata of the module {shown(name)} names another module")
    return list(modules.values())


def damaged(file: Path, what: str) -> ModelFileError:
    """Return the error of an archive that cannot be what microtir wrote."""
    return ModelFileError(
        what,
        where=str(file),
        legal="an archive in Model Library Format that microtir wrote",
        fix=Fix(
            "build the model again and call export_model_library_format()",
            "compile the model again with --output-format mlf",
        ),
    )
