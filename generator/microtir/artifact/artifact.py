"""Defines the artifact: a compiled program in memory, which can be exported."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from microtir.artifact.contents import Contents
from microtir.artifact.folder import write_sources
from microtir.artifact.mlf.export import export_model_library_format
from microtir.config.processors import for_processors
from microtir.errors import UsageError, nearest
from microtir.support.arguments import checked_arguments
from microtir.support.notebook import facts_html


class ExportFormat(Enum):
    """A form in which an artifact is written; the value is what the command line takes."""

    SOURCES = "sources"  # a folder with the generated files
    MLF = "mlf"  # an archive in Model Library Format


@dataclass(frozen=True, slots=True, eq=False)
class Artifact(Contents):
    """A compiled program in memory: what it consists of, and its export."""

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
        return export_model_library_format(self, path, force=force)

    def __repr__(self) -> str:
        """Return what a console shows of it, where the whole of it would be megabytes of text."""
        facts = self.metadata
        processors = for_processors(self.module.require_config("artifact").targets)
        return f"<Artifact {facts.module_name}, {processors}: {len(self.files)} files>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows of it: what it takes, its ports, and its files."""
        facts, memory = self.metadata, self.metadata.memory
        shown = []
        if memory is not None:
            shown.append(("workspace", f"{memory.workspace_size:,} bytes of RAM"))
        if facts.state is not None:
            shown.append(("state", f"{facts.state.size:,} bytes of RAM"))
        shown.append(("weights", f"{facts.weights_bytes:,} bytes of flash"))
        shown += [
            (port.kind, f"{port.member}: {port.dtype} {'x'.join(map(str, port.shape))}")
            for port in facts.ports
        ]
        shown.append(("files", ", ".join(file.path for file in self.files)))
        processors = for_processors(self.module.require_config("artifact").targets)
        return facts_html(f"{facts.module_name}, {processors}", shown)


def _checked_format(value: ExportFormat | str) -> ExportFormat:
    values = [known.value for known in ExportFormat]
    name = value.value if isinstance(value, ExportFormat) else value
    if name not in values:
        raise UsageError(
            f"'{name}' is not an export format",
            where="export(format)",
            legal=", ".join(values),
            fix=nearest(str(name), values) or None,
        )
    return ExportFormat(name)
