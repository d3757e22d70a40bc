"""Option names of microTVM that microtir does not have, each with what took its place."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_EXECUTOR = "it is an option of the executor: Executor('aot', {{'{name}': …}})"

LEGACY: Mapping[str, str] = MappingProxyType(
    {
        "workspace-byte-alignment": _EXECUTOR.format(name="workspace-byte-alignment"),
        "constants-byte-alignment": _EXECUTOR.format(name="constant-byte-alignment"),
        "constant-byte-alignment": _EXECUTOR.format(name="constant-byte-alignment"),
        "interface-api": _EXECUTOR.format(name="interface-api"),
        "unpacked-api": _EXECUTOR.format(name="unpacked-api"),
        "link-params": _EXECUTOR.format(name="link-params"),
        "system-lib": "it is an option of the runtime: Runtime('crt', {'system-lib': …})",
        "executor": "it is a field of CompilationConfig: executor=Executor('aot')",
        "runtime": "it is a field of CompilationConfig: runtime=Runtime('crt')",
        "device": "drop it: the CPU is named by mcpu, the part by model",
        "tag": "drop it: there are no target tags; a creator such as micro() names a part",
        "libs": "name the library and its folder in the field external: cmsis-nn=FOLDER",
        "tir.disable_vectorize": "drop it: no vector types are ever generated for C",
        "tir.usmp.enable": "drop it: memory is always planned",
        "tir.usmp.algorithm": "use memory.placement",
        "tir.usmp.use_workspace_io": "use memory.use_workspace_io",
        "tir.disable_storage_rewrite": "drop it: memory is always planned",
    }
)
