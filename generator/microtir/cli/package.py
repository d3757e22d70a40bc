"""`microtir package` writes models as libraries that the users of other tools install."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from microtir.cli import package_options
from microtir.cli.choice import check_choice
from microtir.cli.model import ModelOrArchive
from microtir.cli.output import cell, facts, write, write_json
from microtir.cli.progress import Progress
from microtir.cli.projects import (
    DEFAULT_SAMPLES,
    GoldenSamples,
    SampleCount,
    TemplateDir,
    TogetherNames,
    compiled_models,
)
from microtir.cli.quantise_options import with_quantiser
from microtir.cli.quantised import print_cost_below
from microtir.cli.quantiser import Quantiser
from microtir.config import CompilationConfig
from microtir.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from microtir.packages import PackageManifest
    from microtir.quantise.summary import Summary as Cost

_SHORT_NAME = 24  # characters that people write without complaint


@with_quantiser
def package(
    model: ModelOrArchive,
    config: CompilationConfig,
    is_cpu_named: bool,
    more: package_options.MoreModels = None,
    output_format: package_options.FormatName = None,
    output: package_options.PackagePlace = None,
    board: package_options.PackageBoard = None,
    force: package_options.Force = False,
    package_name: package_options.PackageName = None,
    package_version: package_options.PackageVersion = "1.0.0",
    summary: package_options.Summary = None,
    author: package_options.Author = None,
    licence: package_options.Licence = None,
    homepage: package_options.Homepage = None,
    vendor: package_options.Vendor = None,
    definition: package_options.Definition = None,
    golden: GoldenSamples = None,
    samples: SampleCount = DEFAULT_SAMPLES,
    together: TogetherNames = None,
    template_dir: TemplateDir = None,
    quantiser: Quantiser | None = None,
    as_json: package_options.AsJson = False,
    listing: package_options.Listing = False,
) -> ExitCode:
    """Writes models as a library for Arduino, Rust, the ESP-IDF and others, or as one header."""
    assert not listing  # the option ends the program
    from microtir.packages import PackageFormat, PackageOptions, generate
    from microtir.packages.formats import PackageTemplates
    from microtir.packages.planned import unnamed_cpu

    if output_format is None or output is None:
        raise _missing(output_format)
    check_choice("package format", output_format, map(str, PackageFormat), "--format")
    if not is_cpu_named:
        raise unnamed_cpu(PackageTemplates(template_dir).manifest(PackageFormat(output_format)))
    models = [model, *(more or [])]
    if golden is not None and len(models) > 1:
        raise UsageError("--golden can be used with only one model", where="--golden")
    options = PackageOptions(
        name=package_name, version=package_version,
        summary=summary,
        author=author,
        licence=licence,
        homepage=homepage, vendor=vendor,
        definitions=definition or (),
    )  # fmt: skip
    with Progress() as progress:
        compiled = compiled_models(models, config, progress, board, golden, samples, quantiser)
        progress.show("writing the package")
        groups = [names.split(",") for names in together or ()]
        options = replace(options, samples=compiled.samples, together=groups)
        manifest = generate(
            compiled.artifacts, output_format, output,
            force=force, options=options, template_dir=template_dir,
        )  # fmt: skip
    is_named = package_name is not None
    _print(manifest, compiled.price, output, as_json=as_json, is_named=is_named)
    return ExitCode.DONE


def _missing(output_format: str | None) -> UsageError:
    return UsageError(
        "the format or the folder of the package is missing",
        where="microtir package",
        fix=f"add {'--format FORMAT' if output_format is None else '-o DIR'}; "
        "microtir package --list lists the formats",
    )


def _print(
    manifest: PackageManifest, price: Cost | None, output: Path, *, as_json: bool, is_named: bool
) -> None:
    """Write what was made, and what integers cost."""
    if as_json:
        paid = {} if price is None else {"quantisation": price.to_dict()}
        write_json({"output": str(output), **asdict(manifest), **paid})
        return
    sizes, (what, workspace) = manifest.sizes, manifest.memory[0]
    write(f"{', '.join(manifest.models)} -> {output}, for {manifest.cpu.name}")
    state = f", {cell(sizes.state)} of state" * (sizes.state > 0)
    facts(
        [
            ("package", f"{manifest.name} {manifest.version}: {manifest.summary}"),
            ("files", f"{len(manifest.sources)} sources, {len(manifest.headers)} headers"),
            ("RAM", f"{cell(workspace)} bytes of {what}{state}"),
            ("flash", f"{cell(sizes.weights)} bytes of weights"),
            *_warning(manifest),
            *_long_name(manifest.name, is_named=is_named),
            ("next", "README.md says how it is installed and used"),
        ]
    )
    if price is not None:
        print_cost_below(price)


def _long_name(name: str, *, is_named: bool) -> list[tuple[str, str]]:
    """Return the row for a name that nobody chose, and that is long where it is written."""
    if is_named or len(name) <= _SHORT_NAME:
        return []
    return [("name", f"--package-name NAME gives a shorter one than these {len(name)} characters")]


def _warning(manifest: PackageManifest) -> list[tuple[str, str]]:
    """Return the row for code that was planned for another CPU than its users have."""
    if manifest.cpu.is_usual:
        return []
    text = (
        f"planned for {manifest.cpu.name}, which no chip of this format has: slower than necessary"
    )
    return [("warning", text)]
