"""Reads the formats of packages: folders of `templates/packages`, each with a `template.toml`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from microtir.boards import Label
from microtir.errors import TemplateFileError, UsageError, nearest
from microtir.instruction_sets.core import Family
from microtir.packages.traits import ModelTrait
from microtir.projects.model_files import ModelFolders
from microtir.support import resources, template_files
from microtir.support.names import MAX_MODULE_NAME
from microtir.support.spelled import Spelled
from microtir.support.texts import LINE, WORD, WORDS
from microtir.support.toml_table import TomlTable


class PackageFormat(Spelled):
    """The form of a package; the value is what the command line takes."""

    ARDUINO = "arduino"
    PLATFORMIO = "platformio"
    ESP_IDF = "esp-idf"
    ZEPHYR = "zephyr"
    CMSIS_PACK = "cmsis-pack"
    PICO = "pico"
    STM32CUBE = "stm32cube"
    MICROPYTHON = "micropython"
    RUST = "rust"
    SINGLE_HEADER = "single-header"


@dataclass(frozen=True, slots=True)
class FormatTemplate:
    """The content of a format's `template.toml`.

    Args:
        title: what the package is called in a sentence.
        label: what the tests of microtir do with such packages.
        proof: how, in a few words.
        folders: where the library lies.
        example: where the example's files lie; None where there is no folder of them.
        archive: the name of an archive, with {vendor}, {package} and {version}.
        fixed_archive: whether no other name is one.
        longest_name: characters of the package's name.
        root: whether everything in an archive lies in one folder.
        honours: the options of `PackageOptions` that it has a place for, of those that not all do.
        refuses: what models may not ask of their callers.
        writes_library: whether the library's files are written as they are.
        own_workspaces: whether each model has a workspace of its own.
        has_metadata: whether the metadata.json of each model is part of it.
        reserved: names, in small letters, that no package may have: they mean something else there.
        families: of the CPUs that its users have; empty for all.
        chips: by CPU, what its users call a chip or board that has it, where their tool asks.
    """

    format: PackageFormat
    title: str
    label: Label
    proof: str
    folders: ModelFolders
    example: str | None
    archive: str
    fixed_archive: bool
    longest_name: int
    root: bool
    honours: tuple[str, ...]
    refuses: tuple[ModelTrait, ...]
    writes_library: bool
    own_workspaces: bool
    has_metadata: bool
    reserved: frozenset[str]
    families: tuple[Family, ...]
    chips: Mapping[str, str]
    parts: tuple[template_files.Part, ...]


class PackageTemplates(template_files.TemplateFiles):
    """The templates of packages, and those of projects that packages use, too.

    Raises:
        UsageError: the user's template folder is not there.
    """

    def __init__(self, template_dir: str | os.PathLike[str] | None = None) -> None:
        own = resources.templates()
        super().__init__(
            [*template_files.checked_folder(template_dir), own / "packages", own / "projects"]
        )

    def manifest(self, chosen: PackageFormat) -> FormatTemplate:
        """Return the checked manifest of a format.

        Raises:
            TemplateFileError: there is none, or a field of it is wrong.
        """
        name = f"{chosen}/{template_files.MANIFEST}"
        path = self.find(name)
        if path is None:
            raise TemplateFileError(f"there are no templates for '{chosen}'", where=name)
        return _read(path, chosen)


def _read(path: Path, chosen: PackageFormat) -> FormatTemplate:
    top = TomlTable.load(path, TemplateFileError)
    models = top.required_text("models", LINE)
    chips = top.table("chips")
    result = FormatTemplate(
        format=chosen,
        title=top.required_text("title", LINE),
        label=top.required_choice("label", Label),
        proof=top.required_text("proof", LINE),
        folders=ModelFolders(
            models,
            top.text("runtime_headers", LINE) or "runtime/include",
            top.text("runtime_sources", LINE) or "runtime/src",
        ),
        example=top.text("example", LINE),
        archive=top.text("archive", LINE) or "{package}-{version}.zip",
        fixed_archive=top.flag("fixed_archive"),
        longest_name=top.integer("longest_name") or MAX_MODULE_NAME,
        root=not top.flag("archive_is_flat"),
        honours=top.texts("honours", LINE),
        refuses=top.choices("refuses", ModelTrait),
        writes_library=not top.flag("embeds_library"),
        own_workspaces=top.flag("own_workspaces"),
        has_metadata=not top.flag("leaves_out_metadata"),
        reserved=frozenset(" ".join(top.texts("reserved", WORDS)).split()),
        families=top.choices("families", Family),
        chips=MappingProxyType({} if chips is None else chips.named_texts(WORD)),
        parts=tuple(map(template_files.read_part, top.tables("part"))),
    )
    top.done()
    return result


def all_formats() -> tuple[FormatTemplate, ...]:
    """Return every format that microtir makes packages in, in the order of the enum."""
    templates = PackageTemplates()
    return tuple(templates.manifest(known) for known in PackageFormat)


def checked_format(value: PackageFormat | str) -> PackageFormat:
    """Return the format that a word names.

    Raises:
        UsageError: it names none; says the nearest.
    """
    names = [str(known) for known in PackageFormat]
    if str(value) not in names:
        raise UsageError(
            f"there is no package format '{value}'",
            where="packages.generate(format)",
            legal=", ".join(names),
            fix=nearest(str(value), names) or None,
        )
    return PackageFormat(str(value))
