"""The result of a compilation: sources and facts about them, exported as files."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import cast

from microtir.codegen import METADATA_FILE, Metadata, SourceFile
from microtir.codegen.metadata import FunctionData, ParameterData
from microtir.errors import OutputError, UsageError, nearest
from microtir.ir_module import IRModule

# `host` and `project` read artifacts, and the facts in them, without knowing codegen.
__all__ = [
    "METADATA_FILE",
    "Artifact",
    "ExportFormat",
    "FunctionData",
    "Metadata",
    "ParameterData",
    "SourceFile",
]


class ExportFormat(Enum):
    """How an artifact is written; the value is what the command line takes."""

    SOURCES = "sources"  # a folder with the generated files


@dataclass(frozen=True, slots=True, eq=False)
class Artifact:
    """A compiled program in memory.

    Args:
        module: the lowered module.
        sources: what codegen printed, `metadata.json` included.
    """

    module: IRModule
    sources: tuple[SourceFile, ...]

    @property
    def metadata(self) -> Metadata:
        """Ports, layers, memory and options: what `metadata.json` holds."""
        return cast("Metadata", json.loads(self.source(METADATA_FILE)))

    def source(self, path: str) -> str:
        """Text of a generated file; KeyError if there is none of this path."""
        return {file.path: file.text for file in self.sources}[path]

    def export(
        self,
        path: str | os.PathLike[str],
        format: ExportFormat | str = ExportFormat.SOURCES,  # noqa: A002 - name of the public API
        *,
        force: bool = False,
    ) -> Path:
        """Write the artifact; a folder is there completely or not at all.

        Args:
            path: a folder. One that microtir wrote before is replaced.
            format: SOURCES is a folder with the generated files.
            force: replace also a folder that holds other files; they are lost.

        Returns:
            The folder.

        Raises:
            UsageError: an unknown format.
            OutputError: the folder holds files that are not microtir's, or cannot be written.
        """
        _check_format(format)
        target = Path(path)
        try:
            _refuse_foreign(target, force)
            _write(target, self.sources)
        except OSError as error:
            raise OutputError(
                f"cannot be written: {error.strerror or error}",
                where=str(target),
                fix="choose a folder that you may write to, on a disk with room",
            ) from None
        return target


def _check_format(given: ExportFormat | str) -> None:
    values = [known.value for known in ExportFormat]
    name = given.value if isinstance(given, ExportFormat) else given
    if name not in values:
        raise UsageError(
            f"'{name}' is not an export format",
            where="export(format)",
            legal=", ".join(values),
            fix=nearest(str(name), values) or None,
        )


def _refuse_foreign(target: Path, force: bool) -> None:
    """Refuse to replace what microtir did not write."""
    if not target.exists():
        return
    if not target.is_dir():
        raise OutputError("is a file, not a folder", where=str(target), fix="choose another name")
    if force or not any(target.iterdir()) or _is_ours(target):
        return
    raise OutputError(
        "the folder holds files that microtir did not write",
        where=str(target),
        legal=f"a new or empty folder, or one with microtir's {METADATA_FILE} and nothing else",
        fix="choose another folder, or replace this one with force",
    )


def _is_ours(folder: Path) -> bool:
    """Whether every file of the folder is one that the last export wrote."""
    try:
        written = json.loads((folder / METADATA_FILE).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}
    return isinstance(written, list) and found <= {str(name) for name in written}


def _write(target: Path, sources: tuple[SourceFile, ...]) -> None:
    """Fill a folder beside the target and move it into place, which a crash cannot cut in half."""
    parent = target.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=parent) as scratch:
        new, old = Path(scratch) / "new", Path(scratch) / "old"
        new.mkdir()
        for file in sources:
            path = new / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.text.encode())
        if target.is_symlink() or not target.exists():
            new.rename(target.resolve())
            return
        shutil.copymode(target, new)
        target.rename(old)
        try:
            new.rename(target)
        except OSError:
            old.rename(target)
            raise
