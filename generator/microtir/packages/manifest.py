"""Describes a package once: what every format says of it, whatever words it has for that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from microtir.artifact import Artifact
from microtir.config import Target
from microtir.config.processors import for_processors, processors
from microtir.errors import UsageError
from microtir.instruction_sets import instruction_set
from microtir.instruction_sets.features import Feature
from microtir.packages.formats import FormatTemplate
from microtir.packages.options import (
    DEFAULT_AUTHOR,
    DEFAULT_HOMEPAGE,
    DEFAULT_VENDOR,
    PackageOptions,
)
from microtir.packages.planned import suits
from microtir.projects.models import Models
from microtir.projects.values import memory_rows


@dataclass(frozen=True, slots=True)
class CpuNeeds:
    """The features of a CPU that a package's kernels need; other CPUs run bodies in portable C.

    Args:
        name: of the CPU, or of several.
        family: of the first; `generic` of plain C for any CPU.
        reads_flash: whether constants are read by instructions that only it has.
        march: its architecture, if it has one.
        word: the option that names the CPU or architecture to GCC; empty where none is needed.
        flags: all options that GCC is given for it.
        is_usual: whether the users of the package's form have such CPUs.
    """

    name: str
    family: str
    reads_flash: bool
    march: str | None
    word: str
    flags: tuple[str, ...]
    is_usual: bool


@dataclass(frozen=True, slots=True)
class PackageSizes:
    """Bytes of RAM and flash that models take together, if they take turns and share RAM."""

    workspace: int
    tensors: int
    state: int
    weights: int


@dataclass(frozen=True, slots=True)
class PackageManifest:
    """Everything that the formats state: each prints it in its own words.

    Paths are those of the package, and files are listed here and nowhere else.

    Args:
        sources, headers: of models and C runtime, in order.
        include_folders: where those headers are searched for.
        example: the C sources of the example.
        memory: what takes how many bytes, where the format may give each model its own workspace.
    """

    name: str
    version: str
    summary: str
    author: str | None
    licence: str | None
    homepage: str | None
    vendor: str
    models: tuple[str, ...]
    sources: tuple[str, ...]
    headers: tuple[str, ...]
    include_folders: tuple[str, ...]
    definitions: tuple[str, ...]
    cpu: CpuNeeds
    sizes: PackageSizes
    example: tuple[str, ...]
    memory: tuple[tuple[str, int], ...]

    @property
    def publisher(self) -> str:
        """Return who answers for it, where a format must name somebody."""
        return self.author or DEFAULT_AUTHOR

    @property
    def url(self) -> str:
        """Return an address, where a format must have one."""
        return self.homepage or DEFAULT_HOMEPAGE


def vendor_of(options: PackageOptions) -> str:
    """Return who publishes a pack, which is a part of the name of its files."""
    return options.vendor or DEFAULT_VENDOR


def describe_package(
    name: str,
    artifacts: Sequence[Artifact],
    models: Models,
    options: PackageOptions,
    template: FormatTemplate,
    paths: Sequence[str],
) -> PackageManifest:
    """Return the manifest of a package.

    Args:
        name: of the package.
        artifacts: the models.
        models: the same, as templates see them.
        options: what the caller says of it.
        template: of its format.
        paths: of all files.
    """
    title, folders = " and ".join(models.names), template.folders
    code = sum(artifact.metadata.code_bytes_estimate for artifact in artifacts)
    library = sorted(path for path in paths if folders.hold(path))
    headers = [path for path in library if path.endswith(".h")]
    return PackageManifest(
        name=name,
        version=options.version,
        summary=options.summary or f"Runs {title} as plain C, without a heap",
        author=options.author,
        licence=options.licence,
        homepage=options.homepage,
        vendor=vendor_of(options),
        models=models.names,
        sources=tuple(path for path in library if path.endswith(".c")),
        headers=tuple(headers),
        include_folders=tuple(sorted({folders.include_folder(path) for path in headers})),
        definitions=tuple(options.definitions),
        cpu=cpu_needs(artifacts, template),
        sizes=PackageSizes(
            models.workspace_bytes,
            models.tensor_bytes,
            sum(model.ram.state for model in models.models),
            models.weights_bytes,
        ),
        example=tuple(
            sorted(path for path in paths if path.endswith(".c") and not folders.hold(path))
        ),
        memory=(*_memory(models, template), ("code, estimated, in flash", code)),
    )


def _memory(models: Models, template: FormatTemplate) -> tuple[tuple[str, int], ...]:
    """Return what takes how many bytes; without shared memory that of each model counts."""
    rows = memory_rows(models, 0, 0)
    if not template.own_workspaces or len(models.models) == 1:
        return tuple(rows)
    workspaces = sum(model.workspace_bytes for model in models.models)
    tensors = sum(port.bytes for model in models.models for port in model.ports)
    own = [("workspaces, one for each model", workspaces), ("inputs and outputs", tensors)]
    return (*own, *rows[len(own) :])


def cpu_needs(artifacts: Sequence[Artifact], template: FormatTemplate) -> CpuNeeds:
    """Return what models need of a CPU.

    Raises:
        UsageError: two of them were compiled for different ones.
    """
    all_targets = [artifact.module.require_config("package").targets for artifact in artifacts]
    for artifact, targets in zip(artifacts, all_targets, strict=True):
        if targets != all_targets[0]:
            raise UsageError(
                f"'{artifact.metadata.module_name}' is {for_processors(targets)}, and "
                f"'{artifacts[0].metadata.module_name}' is {for_processors(all_targets[0])}",
                where="packages.generate(artifacts)",
                fix="compile all models of a package for one CPU",
            )
    first: Target = all_targets[0][0]
    core = first.core
    flags = instruction_set(core.family).compiler_flags(core, first.features, first.mabi)
    return CpuNeeds(
        name=processors(all_targets[0]),
        family=str(core.family),
        reads_flash=first.has(Feature.AVR_PROGMEM),
        march=core.march,
        word=next(iter(flags), ""),
        flags=flags,
        is_usual=all(suits(template, target) for target in all_targets[0]),
    )
