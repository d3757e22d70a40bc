"""Generates a package: a folder or an archive of models in the form of a tool's libraries."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from microtir.artifact import SBOM_FILE, Artifact, sbom_text
from microtir.errors import Fix, OutputError, UsageError, instead_of_replacing
from microtir.packages import formats
from microtir.packages.manifest import PackageManifest, describe_package, vendor_of
from microtir.packages.options import PackageOptions
from microtir.packages.traits import refuse
from microtir.packages.values import archive_name, name_values, package_values
from microtir.projects.model_files import check_headers, model_files, parameter_files
from microtir.projects.models import Models, describe_models
from microtir.projects.values import package_name
from microtir.support.archives import zip_bytes
from microtir.support.files import cannot_write, replace_file, write_folder
from microtir.support.template_files import Part

_WHERE = "packages.generate(artifacts)"
ARCHIVES = (".zip", ".pack")
_METADATA = "/metadata.json"  # of each model, in its folder


def generate(
    artifacts: Artifact | Sequence[Artifact],
    format: formats.PackageFormat | str,  # noqa: A002 - name of the public API
    target: str | os.PathLike[str],
    *,
    force: bool = False,
    options: PackageOptions | None = None,
    template_dir: str | os.PathLike[str] | None = None,
) -> PackageManifest:
    """Write models as a library in the form that the users of another tool install.

    Args:
        artifacts: compiled models, all for one CPU.
        format: whose form.
        target: a folder, or an archive if its name ends in `.zip` or `.pack`.
        force: replace a folder or file that is there; it is lost.
        options: name, version, author and more.
        template_dir: files in it replace those of `templates/packages` of the same path.

    Returns:
        What the package says of itself.

    Raises:
        UsageError: no model, an option that is not legal, or a model that asks for what the format
            has no place for.
        ProjectError: samples do not fit, or two models have one name.
        TemplateFileError: a template is broken, or its file would lie outside of the package.
        OutputError: the target exists, or cannot be written. Nothing was changed then.
    """
    options = options or PackageOptions()
    several = (artifacts,) if isinstance(artifacts, Artifact) else tuple(artifacts)
    templates = formats.PackageTemplates(template_dir)
    template = templates.manifest(formats.checked_format(format))
    models = _described(several, template, options)
    manifest, files = _files(several, templates, template, models, options)
    bill = sbom_text(manifest.name, manifest.version, files, several, options.licence)
    files[SBOM_FILE] = bill.encode()
    _write(Path(target), files, template, manifest, force=force)
    return manifest


def _described(
    artifacts: Sequence[Artifact], template: formats.FormatTemplate, options: PackageOptions
) -> Models:
    """Return the models as templates see them, if the format has a place for each."""
    if not artifacts:
        raise UsageError("a package needs at least one model", where=_WHERE)
    if options.definitions and "definitions" not in template.honours:
        raise UsageError(
            f"{template.title} cannot define macros for the compiler",
            where="PackageOptions(definitions)",
        )
    models = describe_models(artifacts, options.for_application)
    for artifact, values in zip(artifacts, models.models, strict=True):
        refuse(artifact, values, template.refuses, template.title)
    return models


def _files(
    artifacts: Sequence[Artifact],
    templates: formats.PackageTemplates,
    template: formats.FormatTemplate,
    models: Models,
    options: PackageOptions,
) -> tuple[PackageManifest, dict[str, bytes]]:
    name = _package_name(models, template, options)
    folders = template.folders
    library = model_files(artifacts, folders) | parameter_files(artifacts, folders, templates)
    if not template.has_metadata:
        library = {path: text for path, text in library.items() if not path.endswith(_METADATA)}
    targets = templates.targets(
        _parts(template, name), name_values(name, vendor_of(options), models)
    )
    check_headers(models.names, list(targets), _WHERE)
    paths = sorted({*library, *targets} if template.writes_library else targets)
    manifest = describe_package(name, artifacts, models, options, template, paths)
    values = package_values(manifest, template, models, artifacts, paths)
    rendered = templates.render(targets, values)
    return manifest, (library | rendered if template.writes_library else rendered)


def _parts(template: formats.FormatTemplate, name: str) -> list[Part]:
    return [Part(part.folder, part.to.replace("{package}", name)) for part in template.parts]


def _package_name(models: Models, template: formats.FormatTemplate, options: PackageOptions) -> str:
    """Return the name of a package.

    Raises:
        UsageError: it is too long, reserved, or that of a model: headers and modules of both would
            be one.
    """
    name = options.name or package_name(models.names)
    if len(name) > template.longest_name:
        raise UsageError(
            f"the name '{name}' has {len(name)} characters",
            where="PackageOptions(name)",
            legal=f"at most {template.longest_name} in {template.title}",
            fix=Fix("give the package a name", "add --package-name NAME"),
        )
    if name.lower() in template.reserved:
        raise UsageError(
            f"the name '{name}' has another meaning in the tools of {template.title}",
            where="PackageOptions(name)",
            fix=Fix("give the package another name", "give another --package-name"),
        )
    if name.lower() in [model.lower() for model in models.names]:
        raise UsageError(
            f"the package and a model are both called '{name}'",
            where="PackageOptions(name)",
            fix="give the package another name, or the model another module_name",
        )
    return name


def _write(
    target: Path,
    files: Mapping[str, bytes],
    template: formats.FormatTemplate,
    manifest: PackageManifest,
    *,
    force: bool,
) -> None:
    """Write the folder, or the archive if the name says so."""
    if target.suffix not in ARCHIVES:
        write_folder(target, files, force=force)
        return
    name = archive_name(template, manifest)
    suffix = PurePosixPath(name).suffix
    if target.suffix != suffix or (template.fixed_archive and target.name != name):
        raise OutputError(
            f"is not a name of {template.title}",
            where=str(target),
            legal=f"a folder, or {name if template.fixed_archive else f'NAME{suffix}'}",
        )
    with cannot_write(target):
        if target.exists() and not force:
            raise OutputError(
                "this file exists already", where=str(target), fix=instead_of_replacing("file")
            )
    root = f"{manifest.name}/" if template.root else ""
    replace_file(target, zip_bytes({f"{root}{path}": text for path, text in files.items()}))
