"""Writes the software bill of materials of a project or package.

It names each file with its digests, the models that the files were generated from, the compiler,
and the third-party libraries that the code calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from microtir.artifact.artifact import Artifact
from microtir.support import spdx
from microtir.version import __version__

SBOM_FILE = "sbom.spdx.json"

_LICENCE = "LicenseRef-microtir-output"
_LICENCE_TEXT = (
    "Generated code belongs to the user of microtir, who may use it under any terms. That includes "
    "the parts of microtir's templates and C runtime that it copies. The values of the weights are "
    "under the licence of the model."
)
_BUNDLE, _COMPILER = "SPDXRef-Bundle", "SPDXRef-microtir"
_SOURCES = frozenset((".c", ".h", ".cpp", ".hpp", ".S", ".ino", ".rs", ".py"))


def sbom_text(
    name: str,
    version: str,
    files: Mapping[str, bytes],
    artifacts: Sequence[Artifact],
    licence: str | None = None,
) -> str:
    """Return the bill of materials of files by path.

    Args:
        name: of the project or package.
        version: of the same; empty where it has none.
        files: what is written, without the bill itself.
        artifacts: the models of which the files consist.
        licence: an SPDX expression for the whole; None states none.
    """
    listed = [
        spdx.file(number, path, files[path], _kind(path), _LICENCE)
        for number, path in enumerate(sorted(files))
    ]
    whole = spdx.package(_BUNDLE, name, version, "LIBRARY", licence)
    compiler = spdx.package(_COMPILER, "microtir", __version__, "APPLICATION", "Apache-2.0")
    models = _models(artifacts)
    libraries = [
        spdx.package(f"SPDXRef-Library-{library}", library, "", "LIBRARY")
        for library in _libraries(artifacts)
    ]
    relations = [
        spdx.relation(_COMPILER, "BUILD_TOOL_OF", _BUNDLE),
        *(spdx.relation(_BUNDLE, "GENERATED_FROM", str(model["SPDXID"])) for model in models),
        *(spdx.relation(_BUNDLE, "DEPENDS_ON", str(used["SPDXID"])) for used in libraries),
    ]
    bundle = spdx.with_files(whole, files, listed)
    packages = [bundle, compiler, *models, *libraries]
    return spdx.document(name, packages, relations, listed, {_LICENCE: _LICENCE_TEXT})


def _kind(path: str) -> str:
    return "SOURCE" if PurePosixPath(path).suffix in _SOURCES else "OTHER"


def _models(artifacts: Sequence[Artifact]) -> list[spdx.Element]:
    """Return the models as packages; one that was written in Python has no file and no digest."""
    models: list[spdx.Element] = []
    for artifact in artifacts:
        if (facts := artifact.metadata.model) is None:
            continue  # a tensor program
        name = PurePosixPath(facts.file).name or facts.name
        model = spdx.package(f"SPDXRef-Model-{len(models)}", name, "", "SOURCE")
        if facts.sha256:
            model["checksums"] = [spdx.checksum("SHA256", facts.sha256)]
        models.append(model)
    return models


def _libraries(artifacts: Sequence[Artifact]) -> list[str]:
    """Return the third-party libraries that a layer of any model may call."""
    configs = [artifact.module.require_config("artifact") for artifact in artifacts]
    return sorted({str(external.library) for config in configs for external in config.external})
