"""Reads templates of files that users get: which there are in a folder, and their text.

A part is a folder whose files go into what is made: `X.j2` is rendered to `X`, anything else is
copied. Names of files and folders are templates, too. Where several folders are looked up the same
path in an earlier one replaces a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from microtir.errors import TemplateFileError, UsageError
from microtir.support.encoding import ENCODERS, Encoded, EncodingError, is_plain, language_of
from microtir.support.templates import RULES, CompiledTemplates
from microtir.support.texts import LINE, PATH, path_problem
from microtir.support.toml_table import TomlTable

MANIFEST = "template.toml"

_COMPILED = CompiledTemplates()


@dataclass(frozen=True, slots=True)
class Part:
    """A folder of templates and where in what is made its files go."""

    folder: str
    to: str


def checked_folder(template_dir: str | os.PathLike[str] | None) -> tuple[Path, ...]:
    """Return the user's folder of templates, if there is one; UsageError if it is not there."""
    if template_dir is None:
        return ()
    folder = Path(template_dir)
    if not folder.is_dir():
        raise UsageError("there is no such folder", where=f"template folder {folder}")
    return (folder,)


def read_part(table: TomlTable) -> Part:
    """Return a part as the table of a manifest names it."""
    result = Part(table.required_text("folder", LINE), table.required_text("to", LINE))
    table.done()
    return result


class TemplateFiles:
    """The folders that templates are looked up in; the first that has a file wins."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = tuple(roots)
        self._environment = ImmutableSandboxedEnvironment(
            loader=jinja2.FunctionLoader(self._load),
            autoescape=False,  # C is not HTML
            finalize=_finished,
            bytecode_cache=_COMPILED,
            **RULES,
        )
        self._environment.filters |= {**ENCODERS, "as_is": _as_is}

    def targets(self, parts: Sequence[Part], values: Mapping[str, object]) -> dict[str, str]:
        """Return path in the project → template, of some parts; later parts replace files.

        Raises:
            TemplateFileError: a part has no files, or one of them would lie elsewhere.
        """
        targets: dict[str, str] = {}
        for part in parts:
            names = self._names(part.folder)
            if not names:
                raise TemplateFileError("there are no such templates", where=part.folder)
            for name in names:
                inside = PurePosixPath(name).relative_to(part.folder).as_posix()
                target = f"{part.to}/{self._filled(name, inside, values).removesuffix('.j2')}"
                targets[project_path(target, name)] = name
        return targets

    def render(self, targets: Mapping[str, str], values: Mapping[str, object]) -> dict[str, bytes]:
        """Return the files by path in the project; TemplateFileError names template and line."""
        return {path: self._content(name, values) for path, name in targets.items()}

    def _names(self, folder: str) -> list[str]:
        """Return files below a folder of any root, as paths below it, sorted."""
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
        path = self.find(name)
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
            raise TemplateFileError(
                f"prints text that its language cannot contain: {error.what}",
                where=_place(error, name),
                legal=error.legal,
                fix=error.fix,
            ) from None
        except jinja2.TemplateNotFound as error:
            raise TemplateFileError(f"there is no template '{error.name}'", where=name) from None
        except jinja2.TemplateSyntaxError as error:
            place = f"{error.name or name}:{error.lineno}"
            raise TemplateFileError(f"is malformed: {error.message}", where=place) from None
        except (jinja2.UndefinedError, jinja2.TemplateRuntimeError) as error:
            raise TemplateFileError(
                f"uses undefined names: {error.message}", where=_place(error, name)
            ) from None

    def _load(self, name: str) -> tuple[str, str, Callable[[], bool]] | None:
        path = self.find(name)
        if path is None:
            return None
        return path.read_text(encoding="utf-8"), str(path), lambda: True

    def find(self, name: str) -> Path | None:
        """Return the file of this name; a link out of its folder is refused."""
        checked_path(name, name)
        for root in self._roots:
            path = root / name
            if path.is_file():
                if not path.resolve().is_relative_to(root.resolve()):
                    raise TemplateFileError(
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
        legal="text of letters, digits and _ . without an encoder / : = + -",
        fix=f"print it with one of: {', '.join(mine)}" if mine else None,
    )


def checked_path(path: str, where: str) -> str:
    """Return a relative path in its shortest form.

    Raises:
        TemplateFileError: it is absolute or has `..` in it.
    """
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\\" in path or not path:
        raise TemplateFileError(
            f"the path '{path}' leads out of its folder",
            where=where,
            legal="a path below the folder, without '..'",
        )
    return pure.as_posix()


def project_path(path: str, where: str) -> str:
    """Return the shortest relative path of a project's file that its build files name.

    Raises:
        TemplateFileError: make, CMake or a shell would not take it as it is.
    """
    short = checked_path(path, where)
    if problem := path_problem(short):
        raise TemplateFileError(f"the path {short!r} {problem}", where=where, legal=PATH.meaning)
    return short


def _place(error: BaseException, template: str) -> str:
    """Return the template's line of an error: Jinja rewrites its traceback to it."""
    traceback, place = error.__traceback__, template
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        if filename.endswith(".j2"):
            place = f"{filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place
