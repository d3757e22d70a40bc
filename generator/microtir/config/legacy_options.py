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
        "device": "leave out the option. mcpu names the CPU, and model names the part",
        "tag": Fix(
            "leave it out; a creator such as micro() selects a part",
            "leave it out; --config nrf52840 selects a part",
        ),
        "libs": Fix(
            "name the library and its folder in the field external, as cmsis-nn=FOLDER",
            "name the library and its folder with --external cmsis-nn=FOLDER",
        ),
        "tir.disable_vectorize": "leave it out, because C has no vector types",
        "tir.usmp.enable": "leave out the option, because memory is always planned",
        "tir.usmp.algorithm": "use memory.placement",
        "tir.usmp.use_workspace_io": "use memory.use_workspace_io",
        "tir.disable_storage_rewrite": "leave out the option, because memory is always planned",
        "tir.usmp.custom_algorithm": "use memory.placement",
        "tir.add_lower_pass": Fix(
            "pass functions to build(…, passes=ExtraPasses(tir_first=[…]))",
            "build the model from Python, because custom passes are functions",
        ),
        "tir.disable_assert": "leave it out, because accesses are proven",
        "tir.instrument_bound_checkers": "leave it out, because accesses are proven",
        "tir.noalias": "leave it out, because tensors must not overlap",
        "tir.UnrollLoop": "use tir.unroll_max_extent or tir.disable_unroll",
        "tir.debug_keep_trivial_loop": "leave it out, because custom passes see every loop",
        "relay.FuseOps.max_depth": "leave it out, because the plan decides the fusion",
        "relay.backend.use_auto_scheduler": _TUNE,
        "relay.backend.use_meta_schedule": _TUNE,
        "relay.backend.disable_compile_engine_cache": "leave it out, because nothing is cached",
        "relay.ext.cmsisnn.options": Fix(
            "name the CPU in the target, and the folder in the field external",
            "name the CPU with --target, and the folder with --external",
        ),
    }
)
