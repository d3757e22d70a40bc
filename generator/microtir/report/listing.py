"""Lists what each layer became: the C of its function, and the TIR that it is printed from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from microtir.artifact import Artifact, LayerData
from microtir.tir.text import to_text


@dataclass(frozen=True, slots=True)
class ListedFunction:
    """A function with the micro-kernels that it calls, in both languages."""

    title: str
    function: str
    c: str
    tir: str


def listing(artifact: Artifact) -> tuple[ListedFunction, ...]:
    """Return the functions of the layers in the order of execution."""
    return tuple(_listed(artifact))


def _listed(artifact: Artifact) -> Iterator[ListedFunction]:
    facts = artifact.metadata
    lines = artifact.source(f"{facts.module_name}.c").splitlines()
    functions = artifact.module.require_program("listing").functions
    for layer, function in zip(facts.layers, functions, strict=True):
        yield ListedFunction(
            title=f"{layer.index} {layer.operator} {layer.name}",
            function=layer.function,
            c="\n\n".join(_commented(lines, part) for part in _parts(artifact, layer)),
            tir=to_text((function,), constants=False),
        )


def _parts(artifact: Artifact, layer: LayerData) -> list[tuple[int, ...]]:
    """Return the lines of the micro-kernels that a layer calls, and its own."""
    kernels = artifact.metadata.kernels
    called = [kernel.lines for kernel in kernels if layer.function in kernel.layers]
    return [part for part in (*called, layer.lines) if part]


def _commented(lines: Sequence[str], part: Sequence[int]) -> str:
    """Return lines of a file, first and last included, with the comment above them."""
    first = part[0] - 1
    if first and lines[first - 1].rstrip().endswith("*/"):
        first -= 1
        while first and not lines[first].startswith("/*"):
            first -= 1
    return "\n".join(lines[first : part[1]])
