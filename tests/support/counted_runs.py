"""Run the C of a model that is told how many entries there are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cffi
import numpy as np

from microtir.artifact import Artifact
from microtir.host.declarations import declarations
from microtir.host.toolchain import find_compiler
from tests.support.c_compilers import INCLUDES, STRICT, compiler_output
from tests.support.onnx_models import Array

UNTOUCHED = 7
"""What outputs hold before a run."""


class CountedRuns:
    """The model `net`, compiled without a warning."""

    def __init__(self, artifact: Artifact, folder: Path) -> None:
        artifact.export(folder)
        units = [file.path for file in artifact.sources if file.path.endswith(".c")]
        command = ["gcc", "-std=c99", *STRICT, "-O2", "-fPIC", "-shared", *INCLUDES, *units]
        said = compiler_output([*command, "-o", "net.so", "-lm"], folder)
        assert not said, said
        self._outputs = [port for port in artifact.metadata.ports if port.kind == "output"]
        self._ffi = cffi.FFI()
        self._ffi.cdef(declarations(find_compiler("gcc"), folder, ["net.h"]))
        self._library: Any = self._ffi.dlopen(str(folder / "net.so"))

    def run(self, inputs: Mapping[str, Array], count: int) -> tuple[int, dict[str, Array]]:
        """Return the status of a run, and all that outputs hold after it."""
        made = {p.name: np.full(p.shape, UNTOUCHED, p.dtype) for p in self._outputs}
        structs = []
        for kind, arrays in (("inputs", inputs), ("outputs", made)):
            struct = self._ffi.new(f"struct net_{kind} *")
            members = self._ffi.typeof(struct[0]).fields
            for (member, field), array in zip(members, arrays.values(), strict=True):
                setattr(struct, member, self._ffi.cast(field.type, array.ctypes.data))
            structs.append(struct)
        memory = np.zeros(4096, np.uint8)
        start = memory.ctypes.data + -memory.ctypes.data % 64
        return self._library.net_run(*structs, self._ffi.cast("void *", start), count), made
