"""Runs of a model in which memory that it should not rely on is poisoned.

What a program computes must not depend on what its memory held before: neither that which it is
given, nor that which is its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from microtir import host
from microtir.artifact import Artifact, SourceFile
from microtir.graph.ir import Array, Graph
from microtir.host.backend import gaps
from microtir.support.names import c_name
from tests.support.legal import assert_legal

FILLS = (0xA5, 0x5A)

_POISON = """
#include <sanitizer/asan_interface.h>
#include <string.h>

__attribute__((constructor)) static void poison_{name}(void)
{{
    memset({name}, {fill}, sizeof {name});
{guards}
}}
"""


def with_poisoned_pools(artifact: Artifact, fill: int) -> Artifact:
    """Return the program with its pools poisoned before main; what no buffer takes stays so."""
    memory, module = artifact.metadata.memory, artifact.metadata.module_name
    added = ""
    for pool in memory.pools if memory else []:
        name = f"{module}_{c_name(pool.name)}_memory"
        if pool.is_internal and name in artifact.source(f"{module}.c"):
            guards = "\n".join(
                f"    ASAN_POISON_MEMORY_REGION({name} + {start}, {size});"
                for start, size in gaps(artifact, pool.name)
            )
            added += _POISON.format(name=name, fill=fill, guards=guards)
    sources = (
        SourceFile(file.path, file.text + added) if file.path == f"{module}.c" else file
        for file in artifact.sources
    )
    return replace(artifact, sources=tuple(sources)) if added else artifact


def check_sanitized(artifact: Artifact, graph: Graph, inputs: Mapping[str, Array]) -> None:
    """Run twice under sanitizers, on memory of different bytes; both equal the reference."""
    for fill in FILLS:
        model = host.load(with_poisoned_pools(artifact, fill), sanitize=True)
        assert_legal(graph, inputs, model.run(inputs, fill_workspace=fill))


def check_repeated(artifact: Artifact, graph: Graph, inputs: Mapping[str, Array]) -> None:
    """Run optimised code again and again: on memory of other bytes, and after another input."""
    model = host.load(artifact, opt_level=1)
    others = {name: np.flip(array) for name, array in inputs.items()}
    for fill, given in zip((*FILLS, *FILLS), (inputs, others, inputs, inputs), strict=True):
        assert_legal(graph, given, model.run(given, fill_workspace=fill))
