"""Many artifacts in one shared library: operator tests compile hundreds of programs.

One compiler process and one translation unit for all: the start of a compiler and the system
headers cost more than a small program itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from microtir.artifact import Artifact
from microtir.host.backend import SharedLibrary
from microtir.host.build import module_name
from microtir.host.declarations import declarations
from microtir.host.model import Model
from microtir.host.toolchain import find_compiler, run_compiler

_FLAGS = ("-std=c99", "-ffp-contract=off", "-fPIC", "-shared", "-I.")
# Helpers are static and have the same names in every program, which one translation unit forbids.
_STATIC = re.compile(r"^(?:static inline \w+ |typedef char )(\w+)", re.MULTILINE)


def load_batch(
    artifacts: Sequence[Artifact], folder: Path, *, opt_level: int = 1, flags: Sequence[str] = ()
) -> list[Model]:
    """Compile artifacts with distinct module names together; one Model each, in order.

    Args:
        artifacts: models or users' programs, without the packed interface.
        folder: an empty folder for the sources and the library.
        opt_level: of the compiler.
        flags: more flags for the compiler, such as warnings or sanitizers.
    """
    names = write_unit(artifacts, folder)
    compiler = find_compiler()
    arguments = [*_FLAGS, *flags, f"-O{opt_level}", "-o", "batch.so", "batch.c", "-lm"]
    run_compiler(compiler, arguments, folder)
    models = []
    for artifact, name in zip(artifacts, names, strict=True):
        declared = declarations(compiler, folder, [f"{name}.h"])
        models.append(Model(artifact, SharedLibrary(folder / "batch.so", declared, name)))
    return models


def write_unit(artifacts: Sequence[Artifact], folder: Path) -> list[str]:
    """Write the sources of artifacts and `batch.c`, which includes them all; their names."""
    names = [module_name(artifact) for artifact in artifacts]
    assert len(set(names)) == len(names), "every artifact of a batch needs its own module name"
    unit: list[str] = []
    for artifact, name in zip(artifacts, names, strict=True):
        for file in artifact.sources:
            (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
            (folder / file.path).write_text(file.text, encoding="utf-8")
        helpers = _STATIC.findall(artifact.source(f"{name}.c"))
        unit += [f"#define {helper} {name}_{helper}" for helper in helpers]
        unit += [f'#include "{f.path}"' for f in artifact.sources if f.path.endswith(".c")]
        unit += [f"#undef {helper}" for helper in helpers]
    (folder / "batch.c").write_text("\n".join(unit) + "\n", encoding="utf-8")
    return names
