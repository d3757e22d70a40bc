"""Puts a library into one header, whose implementation is compiled where a macro asks for it.

The headers that callers include become its declarations; sources follow in a section of their own,
with the headers that only they include. What the sources of all models call by one name gets the
name of its model in front, since all are in one translation unit, and in one of the user's.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from microtir.artifact import Artifact
from microtir.projects.models import Models, ModelValues
from microtir.projects.samples import SampleArray
from microtir.projects.values import Values
from microtir.support.encoding import Encoded, c_code

_INCLUDE = re.compile(r'^#include "([^"]+)"\n', re.MULTILINE)
# A function or a type at the beginning of a line, with the identifier in front of its parameters.
_DEFINED = re.compile(r"^(?:static|typedef)\b[^;{=()\[\]]*?\b(\w+)\s*[(\[]", re.MULTILINE)
_ATTRIBUTE = "__attribute__"
# An initialiser that names a member, which C++ has from 2020 on.
_NAMED_MEMBER = re.compile(r"^\s+\.\w+ = ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ImplementationPart:
    """The sources of a model: `renames` are pairs of a common name and the model's own one."""

    name: str
    renames: tuple[tuple[str, str], ...]
    text: Encoded


@dataclass(frozen=True, slots=True)
class Trial:
    """A model in the example: so many runs, each sample of so many steps, on these arrays.

    It `is_compared` where an output is expected.
    """

    model: ModelValues
    arrays: tuple[SampleArray, ...]
    runs: int
    steps: int
    is_compared: bool


def header_values(models: Models, artifacts: Sequence[Artifact]) -> Values:
    """Return what the template of the header speaks of besides the common values."""
    seen: set[str] = set()
    declarations = [c_code(_public(artifact, seen)) for artifact in artifacts]
    parts = [_implementation(artifact, seen) for artifact in artifacts]
    arrays = {array.name: array for array in models.sample_arrays}
    trials = [_trial(model, arrays) for model in models.models]
    named = any(_NAMED_MEMBER.search(part.text) for part in parts)
    is_compared = any(trial.is_compared for trial in trials)
    values = {"parts": parts, "names_members": named, "is_compared": is_compared}
    return {**values, "declarations": declarations, "trials": trials}


def _trial(model: ModelValues, arrays: Mapping[str, SampleArray]) -> Trial:
    own = tuple(arrays[port.samples] for port in model.ports if port.samples in arrays)
    is_compared = any(port.samples in arrays for port in model.outputs)
    return Trial(model, own, model.runs, max(model.steps, 1), is_compared)


def _texts(artifact: Artifact) -> Mapping[str, str]:
    return {source.path: source.text for source in artifact.sources}


def _public(artifact: Artifact, seen: set[str]) -> str:
    return _inlined(f"{artifact.metadata.module_name}.h", _texts(artifact), seen).rstrip("\n")


def _implementation(artifact: Artifact, seen: set[str]) -> ImplementationPart:
    name, texts = artifact.metadata.module_name, _texts(artifact)
    sources = [path for path in texts if path.endswith(".c")]
    text = "\n".join(_inlined(path, texts, seen) for path in sources)
    common = sorted(set(_common(text, name)))
    renames = tuple((each, f"{name}_{each}") for each in common)
    return ImplementationPart(name, renames, c_code(text.rstrip("\n")))


def _inlined(path: str, texts: Mapping[str, str], seen: set[str]) -> str:
    """Return a file with each file of its own that it includes in place, the first time."""

    def included(match: re.Match[str]) -> str:
        # A header lies beside the file that includes it, or below the folder of the model.
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), match[1]))
        included_file = beside if beside in texts else match[1]
        if included_file in seen:
            return ""
        return _inlined(included_file, texts, seen)

    seen.add(path)
    return _INCLUDE.sub(included, texts[path])


def _common(text: str, name: str) -> Iterator[str]:
    """Yield what is defined at the top of files under a name that is not the model's own."""
    for match in _DEFINED.finditer(text):
        if match[1] != _ATTRIBUTE and not match[1].startswith(f"{name}_"):
            yield match[1]
