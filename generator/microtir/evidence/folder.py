"""Makes the contents of the folder of evidence, with an index in plain words."""

from __future__ import annotations

from collections.abc import Callable, Collection

from microtir.artifact import SBOM_FILE, Artifact, sbom_text
from microtir.certificate import certified
from microtir.config.processors import for_processors
from microtir.evidence.certificate import check_part, sources_part
from microtir.evidence.coverage import coverage_part
from microtir.evidence.matrix import matrix_part
from microtir.evidence.misra import misra_part
from microtir.evidence.part import Evidence, Part
from microtir.evidence.tools import check_programs
from microtir.evidence.versions import versions_part
from microtir.support.code_templates import render
from microtir.support.encoding import markdown_text

PARTS = ("check", "coverage", "misra")
"""The parts that may be left out, in the order in which they are made."""

INDEX = "README.md"


def evidence_of(
    artifact: Artifact,
    without: Collection[str] = (),
    observe: Callable[[str], None] = lambda _: None,
) -> Evidence:
    """Return the folder of evidence of a compiled model.

    Args:
        artifact: what `build` returned.
        without: names of `PARTS` that are left out; the index says so.
        observe: is told what comes next.

    Raises:
        UsageError: it is no compiled model.
        ToolError: a tool that a part needs is missing or failed.
    """
    check_programs(without)
    observe("writing the certificate")
    artifact = certified(artifact)
    parts = [sources_part(artifact)]
    tools: dict[str, str] = {}
    if "check" not in without:
        observe("checking the certificate")
        parts.append(check_part(artifact))
    if "coverage" not in without:
        observe("measuring coverage")
        coverage, versions = coverage_part(artifact)
        parts.append(coverage)
        tools |= versions
    if "misra" not in without:
        observe("checking MISRA C rules")
        rules, versions = misra_part(artifact)
        parts.append(rules)
        tools |= versions
    observe("tracing operators")
    parts += [matrix_part(artifact), versions_part(artifact, tools)]
    files = {path: content for part in parts for path, content in part.files.items()}
    parts.append(_sbom(artifact, files))
    index = _index(artifact, parts, [name for name in PARTS if name in without])
    return Evidence({**files, **parts[-1].files, INDEX: index.encode()}, tuple(parts))


def _sbom(artifact: Artifact, files: dict[str, bytes]) -> Part:
    name = artifact.metadata.module_name
    text = sbom_text(f"{name}-evidence", "", files, [artifact])
    return Part(
        "sbom",
        {SBOM_FILE: text.encode()},
        f"`{SBOM_FILE}`",
        "The bill of materials (SPDX 2.3): each file with its digest, the model, libraries.",
        "the digests are those of this folder: compare them after every copy",
        f"{len(files)} files",
    )


def _index(artifact: Artifact, parts: list[Part], missing: list[str]) -> str:
    facts = artifact.metadata
    model = facts.model.file if facts.model else facts.module_name
    return render(
        f"evidence/{INDEX}.j2",
        model=markdown_text(model if model.isprintable() else ascii(model)),
        module=facts.module_name,
        generator=facts.generator,
        processors=for_processors(artifact.module.require_config("evidence").targets),
        parts=parts,
        missing=missing,
        failed=[part.name for part in parts if not part.holds],
    )
