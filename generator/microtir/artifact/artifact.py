"""A compiled program in memory, and its export."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import cast

from microtir.arguments import checked_arguments
from microtir.artifact.folder import write_sources
from microtir.codegen import METADATA_FILE, DataFile, FlashUse, Metadata, SourceFile, flash_of
from microtir.errors import UsageError, nearest
from microtir.ir_module import IRModule


class ExportFormat(Enum):
    """How an artifact is written; the value is what the command line takes."""

    SOURCES = "sources"  # a folder with the generated files
    MLF = "mlf"  # an archive in Model Library Format


@dataclass(frozen=True, slots=True, eq=False)
class Artifact:
    """A compiled program in memory.

    Args:
        module: the lowered module; one that was imported from an archive has no functions, only
            configuration and the facts of the model.
        sources: what codegen printed, `metadata.json` included.
        data: files that are not text: the constants, where they are no arrays of the code.
        together: sets of names of modules of the archive that it was imported from, itself in
            each, that may run at the same time.
    """

    module: IRModule
    sources: tuple[SourceFile, ...]
    data: tuple[DataFile, ...] = ()
    together: tuple[frozenset[str], ...] = ()

    @property
    def files(self) -> tuple[SourceFile | DataFile, ...]:
        """Return everything that was generated."""
        return (*self.sources, *self.data)

    @property
    def metadata(self) -> Metadata:
        """Return ports, layers, memory and options: what `metadata.json` holds."""
        return cast("Metadata", json.loads(self.source(METADATA_FILE)))

    @checked_arguments
    def source(self, path: str) -> str:
        """Return the text of a generated file; UsageError if there is none of this path."""
        texts = {file.path: file.text for file in self.sources}
        if path not in texts:
            raise UsageError(
                f"there is no generated file '{path}'",
                where="Artifact.source(path)",
                legal=", ".join(texts),
                fix=nearest(path, texts) or None,
            )
        return texts[path]

    @checked_arguments
    def flash(self, compiled: int | None = None) -> FlashUse:
        """Return the flash that it takes; code by estimate, unless a compiler's bytes are given."""
        return flash_of(self.module, compiled)

    @checked_arguments
    def export(
        self,
        path: str | os.PathLike[str],
        format: ExportFormat | str = ExportFormat.SOURCES,  # noqa: A002 - name of the public API
        *,
        force: bool = False,
    ) -> Path:
        """Write the artifact, completely or not at all.

        Args:
            path: a folder, or the file of an archive. What microtir wrote before for the same model
                is replaced.
            format: SOURCES is a folder with the generated files, MLF an archive that also holds
                the runtime; `export_model_library_format` writes several programs into one.
            force: replace also another model, or what microtir did not write; it is lost.

        Returns:
            The folder or archive.

        Raises:
            UsageError: an unknown format.
            OutputError: there are files that are not microtir's or are another model's, or writing
                failed.
        """
        if _checked_format(format) is ExportFormat.SOURCES:
            return write_sources(Path(path), self.files, self.metadata, force=force)
        from microtir.artifact.mlf import export_model_library_format

        return export_model_library_format(self, path, force=force)


def _checked_format(given: ExportFormat | str) -> ExportFormat:
    values = [known.value for known in ExportFormat]
    name = given.value if isinstance(given, ExportFormat) else given
    if name not in values:
        raise UsageError(
            f"'{name}' is not an export format",
            where="export(format)",
            legal=", ".join(values),
            fix=nearest(str(name), values) or None,
        )
    return ExportFormat(name)
