"""Reads project templates: which files a project type consists of, and their text.

A project type is a folder of `templates/projects` with a `template.toml` that lists parts. The same
path in the user's template folder or in the board's folder replaces a file.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from microtir.boards.board import (
    ProjectSupport,
    ProjectType,
    Requirement,
    read_requirement,
)
from microtir.errors import TemplateFileError
from microtir.projects.frameworks import Framework, read_framework
from microtir.projects.model_files import ModelFolders
from microtir.support import resources, template_files
from microtir.support.texts import COMMAND_WORD, LINE
from microtir.support.toml_table import TomlTable


@dataclass(frozen=True, slots=True)
class BuildStep:
    """A command that works in the project's folder, and what it needs.

    Args:
        command: takes the arguments that a caller adds.
        requires: what must be on the machine.
        then: a second command, for what follows the first without arguments.
        note: where the command comes from, if it is in no Debian package.
        own_compiler: whether it finds a compiler by itself, not that of `board.toml`.
        framework: what it needs that no package has.
    """

    command: tuple[Annotated[str, COMMAND_WORD], ...]
    requires: tuple[Requirement, ...]
    then: tuple[Annotated[str, COMMAND_WORD], ...]
    note: Annotated[str, LINE] | None
    own_compiler: bool
    framework: Framework | None = None  # projects of earlier versions say nothing of it


@dataclass(frozen=True, slots=True)
class Template:
    """The content of `template.toml`; `{package}` in a path stands for the name of the library.

    Args:
        models: folder of the project with one folder of sources for each model.
        runtime_headers, runtime_sources: where the C runtime goes, if a model needs it.
        program: what a build makes; None if it makes no program.
        library: what a build makes for boards that are not the host, if `program` is only for it.
        settings: where a user of the framework sets what an option does not.
        honours: the options of `ProjectOptions` that these projects take, of those that not all do.
        build, flash: commands; None where the project type has none of its own.
    """

    type: ProjectType
    summary: str
    models: str
    runtime_headers: str
    runtime_sources: str
    program: str | None
    library: str | None
    settings: str
    honours: tuple[str, ...]
    build: BuildStep | None
    flash: BuildStep | None
    parts: tuple[template_files.Part, ...]

    @property
    def folders(self) -> ModelFolders:
        return ModelFolders(self.models, self.runtime_headers, self.runtime_sources)

    def build_for(self, support: ProjectSupport) -> BuildStep | None:
        """Return the command that builds, with what it needs for a board."""
        if self.build is None or self.build.framework is None:
            return self.build
        return replace(self.build, framework=self.build.framework.for_board(support.board or ""))

    def named(self, package: str) -> Template:
        """Return the same with the name of the library filled in."""

        def filled(path: str) -> str:
            return path.replace("{package}", package)

        return replace(
            self,
            models=filled(self.models),
            runtime_headers=filled(self.runtime_headers),
            runtime_sources=filled(self.runtime_sources),
            library=self.library and filled(self.library),
            parts=tuple(template_files.Part(part.folder, filled(part.to)) for part in self.parts),
        )


class ProjectTemplates(template_files.TemplateFiles):
    """The templates of projects: those of a user, of a board, and those that come with microtir.

    Raises:
        UsageError: the user's template folder is not there.
    """

    def __init__(
        self, template_dir: str | os.PathLike[str] | None, board_folder: Path | None = None
    ) -> None:
        board = () if board_folder is None else (board_folder,)
        super().__init__(
            [
                *template_files.checked_folder(template_dir),
                *board,
                resources.templates() / "projects",
            ]
        )

    def manifest(self, project_type: ProjectType) -> Template:
        """Return the checked manifest of a project type.

        Raises:
            TemplateFileError: there is none, or a field of it is wrong.
        """
        name = f"{project_type.value}/{template_files.MANIFEST}"
        path = self.find(name)
        if path is None:
            raise TemplateFileError(
                f"there are no templates for projects of type '{project_type.value}'", where=name
            )
        top = TomlTable.load(path, TemplateFileError)
        models = top.required_text("models", LINE)
        result = Template(
            type=project_type,
            summary=top.required_text("summary", LINE),
            models=models,
            runtime_headers=top.text("runtime_headers", LINE) or f"{models}/runtime/include",
            runtime_sources=top.text("runtime_sources", LINE) or f"{models}/runtime/src",
            program=top.text("program", LINE),
            library=top.text("library", LINE),
            settings=top.text("settings", LINE) or "its own settings",
            honours=top.texts("honours", LINE),
            build=_step(top.table("build")),
            flash=_step(top.table("flash")),
            parts=tuple(map(template_files.read_part, top.tables("part"))),
        )
        top.done()
        return result


def _step(table: TomlTable | None) -> BuildStep | None:
    if table is None:
        return None
    requires = tuple(map(read_requirement, table.tables("requires")))
    result = BuildStep(
        command=table.texts("command", COMMAND_WORD),
        requires=requires,
        then=table.texts("then", COMMAND_WORD),
        note=table.text("note", LINE),
        own_compiler=table.flag("own_compiler"),
        framework=read_framework(table.table("framework")),
    )
    table.done()
    if not result.command:
        raise table.problem("command", "there is no command")
    return result
