"""Many artifacts in one shared library: operator tests compile hundreds of programs.

One compiler process and one translation unit for all: the start of a compiler and the system
headers cost more than a small program itself.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from microtir.artifact import Artifact
from microtir.graph.ir import Array
from microtir.host.build import module_name
from microtir.host.model import Model
from microtir.host.toolchain import find_compiler, run_compiler

_FLAGS = ("-std=c99", "-ffp-contract=off", "-fPIC", "-shared", "-I.")
# Helpers are static and have the same names in every program, which one translation unit forbids.
_STATIC = re.compile(
    r"^(?:static (?:inline \w+|uint32_t|float) |typedef char |struct (?=place_of_))(\w+)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Program:
    """One program of a library, called as its header says: structs of pointers, pointers, int32.

    The compiler reads that header with the sources; declarations parsed for each of hundreds of
    programs cost more than the programs.
    """

    library: ctypes.CDLL
    name: str
    entry: str = "run"

    def run(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        *workspace: Array,
        state: Array | None = None,
    ) -> int:
        """Call the entry function and return its status."""
        structs = [(ctypes.c_void_p * len(a))(*map(_address, a)) for a in (inputs, outputs)]
        memories = workspace if state is None else (state, *workspace)
        memory = [ctypes.c_void_p(_address(array)) for array in memories]
        return int(self.library[f"{self.name}_{self.entry}"](*structs, *memory))

    def call(self, function: str, arguments: Sequence[Array | int]) -> int:
        """Call a function of a user's program and return its status."""
        values = (a if isinstance(a, int) else ctypes.c_void_p(_address(a)) for a in arguments)
        return int(self.library[function](*values))

    def call_state(self, operation: str, arguments: Sequence[Array | int]) -> int:
        """Call a function of a model's state and return its status."""
        return self.call(f"{self.name}_state_{operation}", arguments)

    def status_text(self, status: int) -> str:
        """Return a sentence for a status."""
        return f"status {status}"


def _address(array: Array) -> int:
    return int(array.ctypes.data)


def load_batch(
    artifacts: Sequence[Artifact],
    folder: Path,
    *,
    opt_level: int = 1,
    flags: Sequence[str] = (),
    entry: str = "run",
) -> list[Model]:
    """Compile artifacts with distinct module names together; one Model each, in order.

    Args:
        artifacts: models or users' programs, without the packed interface.
        folder: an empty folder for the sources and the library.
        opt_level: of the compiler.
        flags: more flags for the compiler, such as warnings or sanitizers.
        entry: what is behind the module's name in that of the function that runs a model.
    """
    names = write_unit(artifacts, folder)
    compiler = find_compiler()
    arguments = [*_FLAGS, *flags, f"-O{opt_level}", "-o", "batch.so", "batch.c", "-lm"]
    run_compiler(compiler, arguments, folder)
    library = ctypes.CDLL(str(folder / "batch.so"))
    programs = [Program(library, name, entry) for name in names]
    return [Model(a, program) for a, program in zip(artifacts, programs, strict=True)]


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
