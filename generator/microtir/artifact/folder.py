"""Writes an artifact into a folder: whole or not at all, never over somebody else's files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from microtir.codegen import METADATA_FILE, DataFile, Metadata, SourceFile
from microtir.errors import OutputError, instead_of_replacing
from microtir.support.files import cannot_write, replace_folder
from microtir.support.reading import WrongDataError, parse_json

_LEGAL = f"a new or empty folder, or one with microtir's {METADATA_FILE} and nothing else"


def write_sources(
    target: Path, files: Iterable[SourceFile | DataFile], facts: Metadata, *, force: bool
) -> Path:
    """Write generated files into a folder; one that microtir wrote for the model is replaced.

    Raises:
        OutputError: the folder holds files that are not microtir's, or another model's, or cannot
            be written.
    """
    with cannot_write(target):
        _refuse_foreign(target, facts, force)
    replace_folder(target, {file.path: file.content for file in files})
    return target


def whose(facts: Metadata) -> str:
    """Return which program metadata are of: two models of one file and module name are one."""
    return _owner(facts.module_name, facts.model.file if facts.model else None)


def whose_in(written: Mapping[str, Any]) -> str:
    """Return the same of what a file says, perhaps an older one; KeyError or TypeError."""
    model = written["model"]
    return _owner(written["module_name"], model["file"] if model else None)


def _owner(module_name: str, file: str | None) -> str:
    return f"'{module_name}'" + (f" from '{file}'" if file is not None else "")


def _refuse_foreign(target: Path, facts: Metadata, force: bool) -> None:
    """Refuse to replace what microtir did not write, or wrote for another model."""
    if not target.exists():
        return
    if not target.is_dir():
        raise OutputError("is a file, not a folder", where=str(target), fix="choose another name")
    if force or not any(target.iterdir()):
        return
    there = _written(target)
    if there is None:
        raise OutputError(
            "the folder contains files that microtir did not write",
            where=str(target), legal=_LEGAL, fix=instead_of_replacing("folder")
        )  # fmt: skip
    if there != whose(facts):
        raise OutputError(
            f"the folder contains another program ({there}) than the new one ({whose(facts)})",
            where=str(target), legal=_LEGAL, fix=instead_of_replacing("folder")
        )  # fmt: skip


def _written(folder: Path) -> str | None:
    """Return whose files a folder holds, if the last export wrote every one of them."""
    try:
        written = parse_json((folder / METADATA_FILE).read_bytes())
        listed, owner = {str(name) for name in written["files"]}, whose_in(written)
    except (OSError, WrongDataError, KeyError, TypeError):
        return None
    present = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}
    return owner if present <= listed else None
