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
        "tir.usmp.custom_algorithm": "use memory.placement",
        "tir.add_lower_pass": "pass functions to build(…, passes=ExtraPasses(tir_first=[…]))",
        "tir.disable_assert": "drop it: accesses are proven when C is generated, none is checked",
        "tir.instrument_bound_checkers": "drop it: accesses are proven when C is generated",
        "tir.noalias": "drop it: tensors must not overlap, and generated C tells the compiler so",
        "tir.UnrollLoop": "use tir.unroll_max_extent or tir.disable_unroll",
        "tir.debug_keep_trivial_loop": "drop it: a pass of your own sees every loop",
        "relay.FuseOps.max_depth": "drop it: what is fused follows from the plan",
        "relay.backend.use_auto_scheduler": "use `microtir tune` and tuning_records",
        "relay.backend.use_meta_schedule": "use `microtir tune` and tuning_records",
        "relay.backend.disable_compile_engine_cache": "drop it: nothing is cached",
        "relay.ext.cmsisnn.options": "name the CPU in the target, the folder in the field external",
    }
)
