"""Reads project templates: which files a project type consists of, and their text.

A project type is a folder of `templates/projects` with a `template.toml` that lists parts. A part
is a folder whose files go into the project: `X.j2` is rendered to `X`, anything else is copied.
Names of files and folders are templates, too. The same path in the user's template folder or in
the board's folder replaces a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Annotated

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from microtir import resources
from microtir.boards.board import (
    ProjectSupport,
    ProjectType,
    Requirement,
    read_requirement,
)
from microtir.boards.errors import ProjectTemplateError
from microtir.boards.toml_table import TomlTable
from microtir.config.texts import COMMAND_WORD, LINE, PATH, path_problem
from microtir.errors import UsageError
from microtir.projects.frameworks import Framework, read_framework
from microtir.support.encoding import ENCODERS, Encoded, EncodingError, is_plain, language_of
from microtir.support.templates import RULES, CompiledTemplates

MANIFEST = "template.toml"

_COMPILED = CompiledTemplates()


@dataclass(frozen=True, slots=True)
class Part:
    """A folder of templates and where in the project its files go."""

    folder: str
    to: str


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
    parts: tuple[Part, ...]

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
            parts=tuple(Part(part.folder, filled(part.to)) for part in self.parts),
        )


class TemplateFiles:
    """The folders that templates are looked up in; the first that has a file wins.

    Raises:
        UsageError: the user's template folder is not there.
    """

    def __init__(self, template_dir: Path | None, board_folder: Path | None = None) -> None:
        if template_dir is not None and not template_dir.is_dir():
            raise UsageError("there is no such folder", where=f"template folder {template_dir}")
        given = [folder for folder in (template_dir, board_folder) if folder is not None]
        self._roots = (*given, resources.templates() / "projects")
        self._environment = ImmutableSandboxedEnvironment(
            loader=jinja2.FunctionLoader(self._load),
            autoescape=False,  # C is not HTML
            finalize=_finished,
            bytecode_cache=_COMPILED,
            **RULES,
        )
        self._environment.filters |= {**ENCODERS, "as_is": _as_is}

    def manifest(self, project_type: ProjectType) -> Template:
        """Return the checked manifest of a project type.

        Raises:
            ProjectTemplateError: there is none, or a field of it is wrong.
        """
        name = f"{project_type.value}/{MANIFEST}"
        path = self._find(name)
        if path is None:
            raise ProjectTemplateError(
                f"there are no templates for projects of type '{project_type.value}'", where=name
            )
        top = TomlTable.load(path, ProjectTemplateError)
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
            parts=tuple(map(_part, top.tables("part"))),
        )
        top.done()
        return result

    def targets(self, parts: Sequence[Part], values: Mapping[str, object]) -> dict[str, str]:
        """Return path in the project → template, of some parts; later parts replace files.

        Raises:
            ProjectTemplateError: a part has no files, or one of them would lie elsewhere.
        """
        targets: dict[str, str] = {}
        for part in parts:
            names = self._names(part.folder)
            if not names:
                raise ProjectTemplateError("there are no such templates", where=part.folder)
            for name in names:
                inside = PurePosixPath(name).relative_to(part.folder).as_posix()
                target = f"{part.to}/{self._filled(name, inside, values).removesuffix('.j2')}"
                targets[project_path(target, name)] = name
        return targets

    def render(self, targets: Mapping[str, str], values: Mapping[str, object]) -> dict[str, bytes]:
        """Return the files by path in the project; ProjectTemplateError names template and line."""
        return {path: self._content(name, values) for path, name in targets.items()}

    def _names(self, folder: str) -> list[str]:
        """Return files below a folder of any root, as paths below `templates/projects`, sorted."""
        checked_path(folder, "part")
        names: set[str] = set()
        for root in self._roots:
            for path in (root / folder).rglob("*"):
                if path.is_file():
                    names.add(path.relative_to(root).as_posix())
        return sorted(names)

    def _content(self, name: str, values: Mapping[str, object]) -> bytes:
        if name.endswith(".j2"):
            return self._guarded(name, lambda: self._environment.get_template(name), values)
        path = self._find(name)
        assert path is not None, f"{name} was listed"
        return path.read_bytes()

    def _filled(self, name: str, text: str, values: Mapping[str, object]) -> str:
        """Return a path with its placeholders filled in."""
        if "{" not in text:
            return text
        make = self._environment.from_string
        return self._guarded(name, lambda: make(text), values).decode()

    def _guarded(
        self,
        name: str,
        make: Callable[[], jinja2.Template],
        values: Mapping[str, object],
    ) -> bytes:
        try:
            return make().render(values).encode()
        except EncodingError as error:
            raise ProjectTemplateError(
                f"prints what its language cannot hold: {error.what}",
                where=_place(error, name),
                legal=error.legal,
                fix=error.fix,
            ) from None
        except jinja2.TemplateNotFound as error:
            raise ProjectTemplateError(f"there is no template '{error.name}'", where=name) from None
        except jinja2.TemplateSyntaxError as error:
            place = f"{error.name or name}:{error.lineno}"
            raise ProjectTemplateError(f"is malformed: {error.message}", where=place) from None
        except (jinja2.UndefinedError, jinja2.TemplateRuntimeError) as error:
            raise ProjectTemplateError(
                f"asks for what it was not given: {error.message}", where=_place(error, name)
            ) from None

    def _load(self, name: str) -> tuple[str, str, Callable[[], bool]] | None:
        path = self._find(name)
        if path is None:
            return None
        return path.read_text(encoding="utf-8"), str(path), lambda: True

    def _find(self, name: str) -> Path | None:
        """Return the file of this name; a link out of its folder is refused."""
        checked_path(name, name)
        for root in self._roots:
            path = root / name
            if path.is_file():
                if not path.resolve().is_relative_to(root.resolve()):
                    raise ProjectTemplateError(
                        "is a link that leads out of the template folder", where=str(path)
                    )
                return path
        return None


def _as_is(text: object) -> Encoded:
    """Print a text that a template of the user has finished by itself, a macro's for example."""
    return Encoded(str(text), None)


@jinja2.pass_context
def _finished(context: jinja2.runtime.Context, value: object) -> object:
    """Return printed text if it is encoded for its language or has no special character.

    Raises:
        EncodingError: it is neither.
    """
    language = language_of(context.name or "")
    if isinstance(value, Encoded):
        if value.language in (None, language) or language is None:
            return value
        raise EncodingError(f"{str(value)[:80]!r} is encoded for {value.language.value}")
    text = str(value)
    if is_plain(text):
        return text
    mine = [name for name, encoder in ENCODERS.items() if encoder.language is language]
    raise EncodingError(
        f"{text[:80]!r} is not encoded",
        legal="text without an encoder that is of letters, digits and _ . / : = + -",
        fix=f"print it with one of: {', '.join(mine)}" if mine else None,
    )


def checked_path(path: str, where: str) -> str:
    """Return a relative path in its shortest form.

    Raises:
        ProjectTemplateError: it is absolute or has `..` in it.
    """
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\\" in path or not path:
        raise ProjectTemplateError(
            f"the path '{path}' leads out of its folder",
            where=where,
            legal="a path below the folder, without '..'",
        )
    return pure.as_posix()


def project_path(path: str, where: str) -> str:
    """Return the shortest relative path of a project's file that its build files name.

    Raises:
        ProjectTemplateError: make, CMake or a shell would not take it as it is.
    """
    short = checked_path(path, where)
    if problem := path_problem(short):
        raise ProjectTemplateError(f"the path {short!r} {problem}", where=where, legal=PATH.meaning)
    return short


def _part(table: TomlTable) -> Part:
    result = Part(table.required_text("folder", LINE), table.required_text("to", LINE))
    table.done()
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


def _place(error: BaseException, template: str) -> str:
    """Return the template's line of an error: Jinja rewrites its traceback to it."""
    traceback, place = error.__traceback__, template
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        if filename.endswith(".j2"):
            place = f"{filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place
