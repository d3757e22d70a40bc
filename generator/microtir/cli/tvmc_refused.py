"""Lists flags of tvmc that have no counterpart, each with what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_TYPES = "convert the model first, because microtir keeps the types of the file"
_LAYOUTS = "leave out the option, because microtir chooses layouts for each edge of the graph"
_TRACKER = "use --board, and also --port for a real board"
_IR = "use --dump-code tir, or pass a function that prints to build(…, passes=ExtraPasses(…))"
_VERBOSE = "leave it out. A terminal shows the progress, and --debug adds a traceback"
_VM = "use --executor aot"

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "--cross-compiler": "compile writes C and calls no compiler. micro create-project writes a "
        "project that does",
        "--cross-compiler-options": "pass them to the build of a project: micro build DIR CFLAGS=…",
        "--desired-layout": _LAYOUTS,
        "--desired-layout-ops": _LAYOUTS,
        "--dump-offloads": "use microtir profile --explain",
        "--disabled-pass": "use --pass-config; microtir options lists the keys",
        "--print-pass-times": "leave out the option. `microtir explain pipeline` lists the passes",
        "--print-ir-before": _IR,
        "--print-ir-after": _IR,
        "--mixed-precision": _TYPES,
        "--mixed-precision-ops": _TYPES,
        "--mixed-precision-calculation-type": _TYPES,
        "--mixed-precision-acc-type": _TYPES,
        "--end-to-end": "use microtir profile, which counts instructions exactly",
        "--rpc-key": _TRACKER,
        "--rpc-tracker": _TRACKER,
        "--runtime-cpp-system-lib": "use --runtime-crt-system-lib: the runtime is written in C",
        "--executor-vm": _VM,
        "--use-vm": _VM,
        "--verbose": _VERBOSE,
        "-v": _VERBOSE,
        "--target-cmsis-nn-debug_last_error": "leave it out; runs return the status",
        "--target-c-device": "leave out the option, and name the CPU with --target-c-mcpu",
        "--target-c-tag": "leave it out; --config NAME selects a part",
        "--target-c-libs": "use --external LIBRARY=FOLDER",
        "--target-c-host": "use --target-host",
    }
)
# Flags of the other code generators of tvmc.
_OTHER_TARGETS = "leave out the option. The generated code is C, for the CPU that --target names"


def instead_of(flag: str) -> str | None:
    """Return what to do instead of a flag of tvmc that microtir lacks; None for other flags."""
    if flag.startswith("--target-") and not flag.startswith(("--target-c-", "--target-cmsis-nn-")):
        return _OTHER_TARGETS if "-" in flag.removeprefix("--target-") else None
    return REFUSED.get(flag)
