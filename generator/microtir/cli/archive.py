"""Reads a MODEL argument that is an archive in Model Library Format, compiled already."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from microtir.cli.building import build_model
from microtir.cli.progress import Progress
from microtir.config import CompilationConfig
from microtir.errors import UsageError

if TYPE_CHECKING:
    from microtir.artifact import Artifact

SUFFIX = ".tar"


def is_archive(model: str) -> bool:
    """Return whether a MODEL argument names an archive; its content is read later."""
    return model.endswith(SUFFIX)


def check_flags(model: str, options: Mapping[str, object]) -> None:
    """Refuse options of a configuration for what has been compiled with one.

    Args:
        model: the MODEL argument.
        options: values by flag; None and an empty list stand for flags that were not given.

    Raises:
        UsageError: names the first flag.
    """
    flags = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if is_archive(model) and flags:
        raise UsageError(
            f"'{flags[0]}' has no effect on an archive, because an archive is already compiled",
            where=model,
            fix="leave out the option, or compile the model file with it",
        )


def programs(
    model: str, config: CompilationConfig, progress: Progress, board: str | None = None
) -> tuple[Artifact, ...]:
    """Return the compiled programs of a MODEL argument: those of an archive, or one.

    Raises:
        MicrotirError: any diagnostic of reading or compiling.
    """
    if not is_archive(model):
        return (build_model(model, config, progress, board).artifact,)
    from microtir.artifact import import_model_library_format

    progress.show("reading the archive")
    return import_model_library_format(Path(model))


def one_program(
    model: str, config: CompilationConfig, progress: Progress, board: str | None = None
) -> Artifact:
    """Return the compiled program that a MODEL argument stands for.

    Raises:
        UsageError: an archive with several.
        MicrotirError: any diagnostic of reading or compiling.
    """
    artifacts = programs(model, config, progress, board)
    if len(artifacts) > 1:
        names = ", ".join(artifact.metadata.module_name for artifact in artifacts)
        raise UsageError(
            f"the archive holds {len(artifacts)} models: {names}",
            where=model,
            fix="create a project with all models: microtir micro create-project",
        )
    return artifacts[0]
