"""Makes the values that the templates of packages may print: docs/packages.md lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from types import MappingProxyType

from microtir.artifact import Artifact
from microtir.packages.formats import FormatTemplate, PackageFormat
from microtir.packages.manifest import PackageManifest
from microtir.packages.micropython import module_values
from microtir.packages.rust import rust_values
from microtir.packages.single_header import header_values
from microtir.projects.models import Models
from microtir.projects.values import Values, application_values, models_file
from microtir.support.names import macro_name

_STACK = 4096  # bytes for the main thread of an example under an operating system


def name_values(name: str, vendor: str, models: Models) -> Values:
    """Return what names of files may speak of."""
    return {**application_values(models), "package": name, "vendor": vendor}


def package_values(
    manifest: PackageManifest,
    template: FormatTemplate,
    models: Models,
    artifacts: Sequence[Artifact],
    paths: Sequence[str],
) -> Values:
    """Return everything that templates may speak of."""
    more = _MORE.get(template.format)
    is_avr = manifest.cpu.reads_flash
    return {
        **name_values(manifest.name, manifest.vendor, models),
        "manifest": manifest,
        "macro": macro_name(manifest.name),
        "form": template.title,
        "chip": template.chips.get(_core(artifacts), ""),
        "platforms": "atmelavr" if is_avr else "*",
        "architectures": "avr" if is_avr else "*",
        "archive": archive_name(template, manifest),
        "definitions": manifest.definitions,
        "definition_flags": [f"-D{definition}" for definition in manifest.definitions],
        "library_sources": manifest.sources,
        "library_folders": manifest.include_folders,
        "module_sources": manifest.sources,
        "module_folders": manifest.include_folders,
        "application_sources": [_inside(path, template.example) for path in manifest.example],
        "application_files": [PurePosixPath(path).name for path in manifest.example],
        "example_files": [
            _inside(path, template.example) for path in paths if _is_below(path, template.example)
        ],
        "memory_table": [{"what": what, "bytes": size} for what, size in manifest.memory],
        "models_file": models_file(manifest.example),
        "stack_bytes": _STACK,
        **(more(models, artifacts) if more is not None else {}),
    }


def _core(artifacts: Sequence[Artifact]) -> str:
    """Return the CPU or architecture that the models were planned for."""
    target = artifacts[0].module.require_config("package").targets[0]
    return target.core.name


def archive_name(template: FormatTemplate, manifest: PackageManifest) -> str:
    """Return the name that people expect of an archive."""
    return (
        template.archive.replace("{vendor}", manifest.vendor)
        .replace("{package}", manifest.name)
        .replace("{version}", manifest.version)
    )


def _is_below(path: str, folder: str | None) -> bool:
    return folder is not None and PurePosixPath(path).is_relative_to(folder)


def _inside(path: str, folder: str | None) -> str:
    if folder is None or not _is_below(path, folder):
        return path
    return PurePosixPath(path).relative_to(folder).as_posix()


_More = Callable[[Models, Sequence[Artifact]], Values]
# What the templates of one format print that no other's do.
_MORE: Mapping[PackageFormat, _More] = MappingProxyType(
    {
        PackageFormat.MICROPYTHON: module_values,
        PackageFormat.RUST: rust_values,
        PackageFormat.SINGLE_HEADER: header_values,
    }
)
