"""Gives the files of models their places: in projects, and in packages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from microtir.artifact import Artifact
from microtir.boards.errors import ProjectError
from microtir.projects.calls import byte_lines
from microtir.support.names import macro_name
from microtir.support.template_files import TemplateFiles, project_path

RUNTIME_FOLDER = "runtime_crt/"  # in the files of an artifact


@dataclass(frozen=True, slots=True)
class ModelFolders:
    """The folders of a project or a package in which the library of the models lies.

    Args:
        models: folder with one folder of sources for each model.
        runtime_headers, runtime_sources: of the C runtime, if a model needs it.
    """

    models: str
    runtime_headers: str
    runtime_sources: str

    def hold(self, path: str) -> bool:
        """Return whether a file belongs to models or C runtime, not to an application."""
        folders = (self.models, self.runtime_headers, self.runtime_sources)
        return any(PurePosixPath(path).is_relative_to(folder) for folder in folders)

    def include_folder(self, header: str) -> str:
        """Return the folder to search for a header.

        Those of models and of the runtime are included with their folder: "microtir/runtime.h".
        """
        path = PurePosixPath(header)
        for folder in (self.runtime_headers, self.models):
            if path.is_relative_to(folder):
                return folder
        return path.parent.as_posix()


def model_files(artifacts: Sequence[Artifact], folders: ModelFolders) -> dict[str, bytes]:
    """Return each model in its own folder, and one C runtime for all models that use it."""
    files: dict[str, bytes] = {}
    seen: dict[str, str] = {}
    for artifact in artifacts:
        name = artifact.metadata.module_name
        for source in artifact.sources:
            # A program has one system library: its functions would be defined for each model.
            is_twice = len(artifacts) > 1 and source.path == f"{name}_system_lib.c"
            # So would those of a library, or of an operator of the user, that two models call.
            is_shared = source.path.endswith(".c") and not source.path.startswith(f"{name}_")
            is_twice |= is_shared and seen.setdefault(source.path, name) != name
            if not is_twice:
                path = _place(source.path, name, folders)
                files |= {project_path(path, source.path): source.text.encode()} if path else {}
    return files


def parameter_files(
    artifacts: Sequence[Artifact], folders: ModelFolders, files: TemplateFiles
) -> dict[str, bytes]:
    """Return the weights that models have in a file, as arrays of the program."""
    files_of: dict[str, bytes] = {}
    for artifact in artifacts:
        name, parameters = artifact.metadata.module_name, artifact.metadata.parameters
        for file in artifact.data:
            if parameters is None or file.path != parameters.file:
                continue  # a pool, or the same weights in a form for others
            values = {
                "name": name, "macro": macro_name(name), "lines": byte_lines(file.content),
            }  # fmt: skip
            stem = f"{folders.models}/{name}/{name}_parameters"
            targets = {f"{stem}.{end}": f"parameters/parameters.{end}.j2" for end in ("h", "c")}
            files_of |= files.render(targets, values)
    return files_of


def check_headers(names: Sequence[str], paths: Sequence[str], where: str) -> None:
    """Refuse a model whose header has the name of a header of the application.

    Args:
        names: of the models.
        paths: of the application's files.
        where: for the message.

    Raises:
        ProjectError: names it.
    """
    taken = [PurePosixPath(path).name for path in paths]
    for name in names:
        if f"{name}.h" in taken:
            raise ProjectError(
                f"the project itself contains a file '{name}.h'",
                where=where,
                fix="give the model another module_name in its configuration",
            )


def _place(path: str, name: str, folders: ModelFolders) -> str | None:
    """Return where a file of an artifact lies in a project; None for what people read."""
    for folder, place in (
        (f"{RUNTIME_FOLDER}include/", folders.runtime_headers),
        (f"{RUNTIME_FOLDER}src/", folders.runtime_sources),
    ):
        if path.startswith(folder):
            return f"{place}/{path.removeprefix(folder)}"
    return None if path.startswith(RUNTIME_FOLDER) else f"{folders.models}/{name}/{path}"
