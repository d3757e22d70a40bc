"""Defines what a compiled program consists of."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.codegen import DataFile, Metadata, SourceFile, measured
from microtir.errors import UsageError, nearest
from microtir.measure import FlashUse
from microtir.module.ir_module import IRModule
from microtir.support.arguments import checked_arguments


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """A compiled program in memory.

    Args:
        module: the lowered module; one that was imported from an archive has no functions, only
            configuration and the facts of the model.
        sources: what codegen printed, `metadata.json` included.
        metadata: ports, layers, memory and options: what `metadata.json` says.
        data: files that are not text: the constants, where they are no arrays of the code.
        concurrent: sets of names of modules of the archive that it was imported from, itself in
            each, that may run at the same time.
    """

    module: IRModule
    sources: tuple[SourceFile, ...]
    metadata: Metadata
    data: tuple[DataFile, ...] = ()
    concurrent: tuple[frozenset[str], ...] = ()

    @property
    def files(self) -> tuple[SourceFile | DataFile, ...]:
        """Return everything that was generated."""
        return (*self.sources, *self.data)

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
        return measured(self.module).flash.with_code(compiled)
