"""Lists option names of microTVM that microtir does not have, each with what took its place."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microtir.errors import Fix

_TUNE = Fix("use `microtir tune` and tuning_records", "use `microtir tune` and --tuning-records")


def _executor(name: str) -> Fix:
    return Fix(
        f"it is an option of the executor: Executor('aot', {{'{name}': …}})",
        f"it is an option of the executor: --executor-aot-{name} VALUE",
    )


LEGACY: Mapping[str, str] = MappingProxyType(
    {
        "workspace-byte-alignment": _executor("workspace-byte-alignment"),
        "constants-byte-alignment": _executor("constant-byte-alignment"),
        "constant-byte-alignment": _executor("constant-byte-alignment"),
        "interface-api": _executor("interface-api"),
        "unpacked-api": _executor("unpacked-api"),
        "link-params": _executor("link-params"),
        "system-lib": Fix(
            "it is an option of the runtime: Runtime('crt', {'system-lib': …})",
            "it is an option of the runtime: --runtime-crt-system-lib VALUE",
        ),
        "executor": Fix(
            "it is a field of CompilationConfig: executor=Executor('aot')",
            "it is a separate option: --executor aot",
        ),
        "runtime": Fix(
            "it is a field of CompilationConfig: runtime=Runtime('crt')",
            "it is a separate option: --runtime crt",
        ),
        "device": "drop it: the CPU is named by mcpu, the part by model",
        "tag": Fix(
            "drop it: there are no target tags; a creator such as micro() names a part",
            "drop it: there are no target tags; --config nrf52840 names a part",
        ),
        "libs": Fix(
            "name the library and its folder in the field external: cmsis-nn=FOLDER",
            "name the library and its folder: --external cmsis-nn=FOLDER",
        ),
        "tir.disable_vectorize": "drop it: no vector types are ever generated for C",
        "tir.usmp.enable": "drop it: memory is always planned",
        "tir.usmp.algorithm": "use memory.placement",
        "tir.usmp.use_workspace_io": "use memory.use_workspace_io",
        "tir.disable_storage_rewrite": "drop it: memory is always planned",
        "tir.usmp.custom_algorithm": "use memory.placement",
        "tir.add_lower_pass": Fix(
            "pass functions to build(…, passes=ExtraPasses(tir_first=[…]))",
            "build from Python: custom passes are functions",
        ),
        "tir.disable_assert": "drop it: accesses are proven when C is generated",
        "tir.instrument_bound_checkers": "drop it: accesses are proven when C is generated",
        "tir.noalias": "drop it: tensors must not overlap, and generated C tells the compiler so",
        "tir.UnrollLoop": "use tir.unroll_max_extent or tir.disable_unroll",
        "tir.debug_keep_trivial_loop": "drop it: a custom pass sees every loop",
        "relay.FuseOps.max_depth": "drop it: the plan decides which operators are fused",
        "relay.backend.use_auto_scheduler": _TUNE,
        "relay.backend.use_meta_schedule": _TUNE,
        "relay.backend.disable_compile_engine_cache": "drop it: nothing is cached",
        "relay.ext.cmsisnn.options": Fix(
            "name the CPU in the target, the folder in the field external",
            "name the CPU with --target, the folder with --external",
        ),
    }
)
